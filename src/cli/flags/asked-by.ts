import { hostname, userInfo } from "node:os"
import { Option } from "effect"
import { Flag } from "effect/cli"

const maxNameLength = 200

/** Returns the user of this process on this machine: `ana@host`. */
export const thisUser = (): string => {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // Some containers run under a uid without a name.
    return `${process.getuid?.() ?? "unknown"}@${hostname()}`
  }
}

/** `--by WHO`: who requests the change, recorded in the history. */
export const byFlag = Flag.String("by").pipe(
  Flag.withMetavar("WHO"),
  Flag.withDescription("Who asks for it, told in the history (default: user@host)"),
  Flag.filterMap(
    (text) =>
      /^\P{Cc}+$/u.test(text) && text.length <= maxNameLength ? Option.some(text) : Option.none(),
    () => `must be a name of 1 to ${maxNameLength} characters on one line`
  ),
  Flag.optional,
  Flag.map(Option.getOrElse(thisUser))
)
