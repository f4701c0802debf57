/** Global flags that take a value. */
const withValue: ReadonlyArray<string> = [
  "--nats",
  "--creds",
  "--nkey",
  "--nats-ca",
  "--nats-cert",
  "--nats-key",
  "--prefix",
  "--events",
  "--log-level",
  "--completions"
]

/**
 * Returns the first argument that is neither a flag nor a flag's value: the command, if it is one.
 */
export const named = (args: ReadonlyArray<string>): string | undefined =>
  args.find((arg, index) => !arg.startsWith("-") && !withValue.includes(args[index - 1] ?? ""))
