/* Says which limit there was before C++ ends the process, for want of memory for example: its own
 * message is only "std::bad_alloc". Loaded by memory.py, with the function that C++ has for this.
 */
#include <string.h>
#include <unistd.h>

typedef void (*handler)(void);

static handler end;
static const char *text;

static void say_and_end(void)
{
  if (write(STDERR_FILENO, text, strlen(text)) < 0)
  {
    /* There is nobody to tell. */
  }
  end();
}

/* Says a text, which has to stay, before the process ends. Called once. */
void crazyflow_ros_say_before_end(handler (*set_terminate)(handler), const char *said)
{
  text = said;
  end = set_terminate(say_and_end);
}
