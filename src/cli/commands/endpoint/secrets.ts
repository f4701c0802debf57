import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { unreadable } from "../../../broker/credentials.ts"
import { refusal } from "../../refused.ts"
import { readStdin } from "../../terminal/stdin.ts"

/** Flags whose values may be secret. */
export interface SecretFlags {
  readonly secret: {
    /** The secret itself, or `-` for standard input. */
    readonly secret: string | undefined
    readonly secretFile: string | undefined
  }
  readonly headers: {
    /** `name: value` each. */
    readonly header: ReadonlyArray<string>
    readonly headerFile: string | undefined
  }
}

/** Larger than any secret. */
const maxFileBytes = 64 * 1024

const readLines = (flag: string, path: string) =>
  Effect.try({
    try: () => readFileSync(path, "utf8"),
    catch: (error) => refusal([`${flag} ${path} cannot be read: ${unreadable(error)}`])
  })

const readSecret = Effect.fnUntraced(function* ({ secret, secretFile }: SecretFlags["secret"]) {
  if (secret !== undefined && secretFile !== undefined)
    return yield* refusal(["--secret and --secret-file exclude each other"])
  if (secretFile === undefined && secret !== "-") return secret
  const text =
    secretFile === undefined
      ? (yield* readStdin(maxFileBytes)).toString("utf8")
      : yield* readLines("--secret-file", secretFile)
  const read = text.trim()
  if (read === "")
    return yield* refusal([
      `there is no secret ${secretFile === undefined ? "on standard input" : `in ${secretFile}`}`
    ])
  return read
})

/** Returns what to use instead of secrets in arguments, as one warning. */
const caution = ({ headers: { header }, secret: { secret } }: SecretFlags) => {
  const given = [
    ...(secret === undefined || secret === "-"
      ? []
      : [["--secret", "--secret-file FILE or --secret - for standard input"]]),
    ...(header.length === 0 ? [] : [["--header", "--header-file FILE"]])
  ]
  if (given.length === 0) return Effect.void
  const flags = given.map(([flag]) => flag).join(" and ")
  const instead = given.map(([, other]) => other).join(", and ")
  return Effect.logWarning(
    `other users of this machine see what ${flags} ${given.length === 1 ? "is" : "are"} given: use ${instead}`
  )
}

/**
 * Returns the secret and the header lines of an invocation, from arguments (with a warning), files
 * or standard input. In a file of headers, empty lines and lines that begin with # are ignored.
 */
export const givenSecrets = Effect.fnUntraced(function* (flags: SecretFlags) {
  const secret = yield* readSecret(flags.secret)
  const { header, headerFile } = flags.headers
  const text = headerFile === undefined ? "" : yield* readLines("--header-file", headerFile)
  yield* caution(flags)
  return {
    secret,
    headers: {
      header,
      headerLines: text.split("\n").filter((line) => !/^\s*(#|$)/.test(line))
    }
  }
})
