import { randomBytes } from "node:crypto"
import { readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { Refused } from "../../refused.ts"

const usable = /^[A-Za-z0-9_-]{16,128}$/

/** Returns the shell expression for the content of a file. */
export const contentOf = (file: string): string =>
  /^[\w./-]+$/.test(file) ? `$(cat ${file})` : `$(cat '${file.replaceAll("'", `'\\''`)}')`

/** The token that the broker requires from its clients, and the file that contains it. */
export interface DevToken {
  readonly token: string
  readonly file: string
  /** Returns the broker's address for a shell that may read the file, without the token itself. */
  readonly shellUrl: (url: string) => string
}

/** Returns an address with the token in place of a user, as clients accept it. */
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
 * Returns the token of a data directory. Creates it if missing, in a file that only its owner can
 * read. Fails if the file is unusable, or if others can read it.
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
