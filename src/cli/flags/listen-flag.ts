import { Option } from "effect"
import { Flag } from "effect/cli"
import type { ListenRefused } from "../../metrics/listen.ts"
import { Refused } from "../refused.ts"

/**
 * `--listen`: where a command listens.
 *
 * @param read parses it; undefined where it is refused.
 */
export const listenFlag = <A>(
  description: string,
  usual: string,
  read: (text: string) => A | undefined
): Flag.Flag<A> =>
  Flag.String("listen").pipe(
    Flag.withMetavar("HOST:PORT"),
    Flag.withDescription(description),
    Flag.withDefault(usual),
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(read(text)),
      () => `must be an address and a port, such as ${usual}`
    )
  )

/**
 * Returns the refusal of an address that cannot be used.
 *
 * @param example another one.
 */
export const notListening = (
  { code, message }: ListenRefused,
  listen: string,
  example: string
): Refused => {
  const sentences: Readonly<Record<string, string>> = {
    EADDRINUSE: `something listens on ${listen} already: choose another address with --listen, such as ${example}`,
    EADDRNOTAVAIL: `this machine has no address ${listen}: choose another with --listen`,
    ENOTFOUND: `this machine has no address ${listen}: choose another with --listen`,
    EACCES: `this user may not listen on ${listen}: choose another with --listen`
  }
  const other = `nothing can listen on ${listen} (${message}): choose another address with --listen`
  return new Refused({ message: sentences[code] ?? other })
}
