// The hovering Crazyflie of RLtools (l2f), for its Python interface: its default parameters with the
// reward and the limit of velocity of its own trainings.
#pragma once

#include <rl_tools/rl/environments/l2f/operations_cpu.h>
#include <rl_tools/rl/environments/l2f/parameters/default.h>

template <typename T, typename TI>
using Defaults = rl_tools::rl::environments::l2f::parameters::DEFAULT_PARAMETERS_FACTORY<T, TI>;

template <typename T, typename TI>
struct Hover : Defaults<T, TI>::STATIC_PARAMETERS
{
  using Parameters = typename Defaults<T, TI>::PARAMETERS_TYPE;
  static constexpr Parameters changed()
  {
    Parameters values = Defaults<T, TI>::nominal_parameters;
    values.mdp.reward = rl_tools::rl::environments::l2f::parameters::reward_functions::squared<T>;
    values.mdp.termination.linear_velocity_threshold = 10;  // m/s
    return values;
  }
  static constexpr Parameters PARAMETER_VALUES = changed();
};

template <typename T, typename TI>
using ENVIRONMENT_FACTORY =
  rl_tools::rl::environments::Multirotor<rl_tools::rl::environments::l2f::Specification<
    T, TI, Hover<T, TI>>>;
