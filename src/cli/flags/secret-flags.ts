import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { unreadable } from "../../broker/credentials.ts"
import { refusal } from "../refused.ts"
import { readStdin } from "../terminal/stdout.ts"

/** A secret as the flags --secret and --secret-file give it. */
export interface GivenSecret {
  /** The secret itself, or `-` for standard input. */
  readonly secret: string | undefined
  readonly secretFile: string | undefined
}

/** Larger than any secret. */
const maxFileBytes = 64 * 1024

/** Reads a file that a flag names. */
export const readLines = (flag: string, path: string) =>
  Effect.try({
    try: () => readFileSync(path, "utf8"),
    catch: (error) => refusal([`${flag} ${path} cannot be read: ${unreadable(error)}`])
  })

/** Returns the secret that is given in an argument, a file or on standard input, if one is. */
export const readSecret = (given: GivenSecret) => readGivenSecret("secret", given)

/**
 * The same of flags of another name.
 *
 * @param name of the flag; that of the file ends with `-file`.
 */
export const readGivenSecret = Effect.fnUntraced(function* (
  name: string,
  { secret, secretFile }: GivenSecret
) {
  if (secret !== undefined && secretFile !== undefined)
    return yield* refusal([`--${name} and --${name}-file cannot be combined`])
  if (secretFile === undefined && secret !== "-") return secret
  const text =
    secretFile === undefined
      ? (yield* readStdin(maxFileBytes)).toString("utf8")
      : yield* readLines(`--${name}-file`, secretFile)
  const read = text.trim()
  if (read === "")
    return yield* refusal([
      `there is no secret ${secretFile === undefined ? "on standard input" : `in ${secretFile}`}`
    ])
  return read
})
