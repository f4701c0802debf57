import { randomBytes } from "node:crypto"
import { readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { Refused } from "./refused.ts"

const usable = /^[A-Za-z0-9_-]{16,128}$/

/** The shell's words for the content of a file. */
const contentOf = (file: string): string =>
  /^[\w./-]+$/.test(file) ? `$(cat ${file})` : `$(cat '${file.replaceAll("'", `'\\''`)}')`

/** What a broker asks its clients for, and where it is kept. */
export interface DevToken {
  readonly token: string
  readonly file: string
  /** The broker's address for a shell that may read the file, without the token in it. */
  readonly shellUrl: (url: string) => string
}

/** An address with the token, as clients take it: in the place of a user. */
export const withToken = (url: string, token: string): string => url.replace("//", `//${token}@`)

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ENOENT"

const readOrMake = async (file: string): Promise<string> => {
  try {
    const token = (await readFile(file, "utf8")).trim()
    if (!usable.test(token)) throw new Error("it must be 16 to 128 letters, digits, - or _")
    if (((await stat(file)).mode & 0o077) !== 0)
      throw new Error("others on this machine may read it")
    return token
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    const token = randomBytes(24).toString("base64url")
    await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" })
    return token
  }
}

/**
 * The token of a data directory, made where there is none, in a file that nobody else may read.
 * Fails where the file cannot be used, or others may read it.
 */
export const readDevToken = (data: string): Effect.Effect<DevToken, Refused> => {
  const file = join(data, "token")
  return Effect.tryPromise({
    try: () => readOrMake(file),
    catch: (cause) =>
      new Refused({
        message: `the token in ${file} cannot be used (${cause instanceof Error ? cause.message : String(cause)}): remove the file, and a new one is made`
      })
  }).pipe(
    Effect.map((token) => ({
      token,
      file,
      shellUrl: (url) => `"${withToken(url, contentOf(file))}"`
    }))
  )
}
