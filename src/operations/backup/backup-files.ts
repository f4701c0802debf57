import { createHash, type Hash } from "node:crypto"
import { createReadStream, existsSync, readdirSync } from "node:fs"
import { type FileHandle, open, readdir, readFile, rename, rm, rmdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Exit } from "effect"
import { makeDirectory } from "../../broker/embedded/make-directory.ts"
import { BackupError, type BackupFile, manifestFile } from "./manifest.ts"

/** Only who made a backup may read it: it holds the endpoints' secrets. */
const fileMode = 0o600
const directoryMode = 0o700

const because = (what: string) => (cause: unknown) => {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined
  const why =
    code === "ENOSPC"
      ? "its disk is full: free some space, or give another folder"
      : code === "EACCES" || code === "EPERM"
        ? "this user may not"
        : code === "ENOENT"
          ? "there is no such file or folder"
          : cause instanceof Error
            ? cause.message
            : String(cause)
  return new BackupError({ message: `cannot ${what}: ${why}` })
}

const attempt = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: because(what) })

/** Makes the folder of a backup. Fails if there is something in it. Returns whether there was none. */
export const makeBackupFolder = Effect.fnUntraced(function* (directory: string) {
  const isNew = !existsSync(directory)
  const found = yield* attempt(`write to ${directory}`, async () => {
    makeDirectory(directory, directoryMode)
    return await readdir(directory)
  })
  if (found.includes(manifestFile))
    return yield* new BackupError({
      message: `there is a backup in ${directory} already: give another folder`
    })
  if (found.length > 0)
    return yield* new BackupError({
      message: `${directory} is not empty; it may hold a backup that was interrupted: give another folder, or remove what is in it`
    })
  return isNew
})

const draftFile = `${manifestFile}.tmp`

/** The file that has the copy of a stream. */
export const snapshotFile = (stream: string): string => `${stream}${snapshotEnding}`
const snapshotEnding = ".snapshot"

/** The file that has what came into a stream after its copy. */
export const tailFile = (stream: string): string => `${stream}${tailEnding}`
const tailEnding = ".tail"

const isPart = (name: string): boolean =>
  name === manifestFile ||
  name === draftFile ||
  name.endsWith(snapshotEnding) ||
  name.endsWith(tailEnding)

/**
 * Removes what a backup has written that was not made: it is of no use, and takes the space that the
 * next one needs. The folder, too, where the backup made it.
 */
export const removeParts = (directory: string, isNew: boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    const found = await readdir(directory).catch(() => [])
    await Promise.allSettled(found.filter(isPart).map((name) => rm(join(directory, name))))
    if (isNew) await rmdir(directory).catch(() => undefined)
  })

/** A file under way. Its bytes are on disk once it is closed. */
export class BackupWriter {
  readonly #file: FileHandle
  readonly #hash: Hash = createHash("sha256")
  #bytes = 0
  #failure: unknown

  constructor(file: FileHandle) {
    this.#file = file
  }

  readonly write = async (chunk: Uint8Array): Promise<void> => {
    this.#hash.update(chunk)
    this.#bytes += chunk.length
    try {
      await this.#file.writeFile(chunk)
    } catch (error) {
      this.#failure = error
      throw error
    }
  }

  /** Why a chunk could not be written; undefined if all could. */
  get failure(): unknown {
    return this.#failure
  }

  async close(name: string): Promise<BackupFile> {
    await this.#file.sync()
    return { file: name, bytes: this.#bytes, sha256: this.#hash.digest("hex") }
  }
}

/**
 * Writes a file of a backup, over what it was before.
 *
 * @returns the file, and what `fill` returned.
 */
export const writeBackupFile = <A, E, R>(
  directory: string,
  name: string,
  fill: (writer: BackupWriter) => Effect.Effect<A, E, R>
) =>
  Effect.acquireUseRelease(
    attempt(`write ${name}`, () => open(join(directory, name), "w", fileMode)),
    Effect.fnUntraced(function* (file) {
      const writer = new BackupWriter(file)
      const filled = yield* Effect.catchCause(
        fill(writer),
        (cause): Effect.Effect<never, E | BackupError> =>
          writer.failure === undefined
            ? Effect.failCause(cause)
            : Effect.fail(because(`write ${name}`)(writer.failure))
      )
      const written = yield* attempt(`write ${name}`, () => writer.close(name))
      return { ...written, filled }
    }),
    (file, exit) =>
      Effect.promise(async () => {
        await file.close()
        // A part of a copy is of no use.
        if (Exit.isFailure(exit)) await rm(join(directory, name), { force: true })
      })
  )

/** Writes the manifest, which makes a backup of what is in its folder. */
export const writeManifest = Effect.fnUntraced(function* (directory: string, text: string) {
  yield* writeBackupFile(directory, draftFile, (writer) =>
    attempt(`write ${draftFile}`, () => writer.write(Buffer.from(text)))
  )
  yield* attempt(`write ${manifestFile}`, async () => {
    await rename(join(directory, draftFile), join(directory, manifestFile))
    const folder = await open(directory)
    await folder.sync().finally(() => folder.close())
  })
})

/** Says what is in a folder without a manifest. */
const withoutManifest = (directory: string): string => {
  if (!existsSync(directory)) return `there is no folder ${directory}`
  return readdirSync(directory).some(isPart)
    ? `the backup in ${directory} was interrupted before it was complete (it has no ${manifestFile}, which is written last): restore another one, and remove this one`
    : `there is no backup in ${directory}: give the folder that \`petrel backup\` was given`
}

/** Reads the text of a backup's manifest. */
export const readManifestText = (directory: string) =>
  Effect.tryPromise({
    try: () => readFile(join(directory, manifestFile), "utf8"),
    catch: (cause) =>
      cause instanceof Error && "code" in cause && cause.code === "ENOENT"
        ? new BackupError({ message: withoutManifest(directory) })
        : because(`read ${manifestFile}`)(cause)
  })

/** The bytes of a file of a backup. */
export const chunksOf = (directory: string, { file }: BackupFile): AsyncIterable<Uint8Array> =>
  createReadStream(join(directory, file), { highWaterMark: 1024 * 1024 })

/** Reads a small file of a backup as a whole. */
export const readBackupFile = (directory: string, { file }: BackupFile) =>
  attempt(`read ${file}`, () => readFile(join(directory, file), "utf8"))

/**
 * Fails unless a file is as it was written.
 *
 * @param advance called with the number of bytes read.
 */
export const checkFile = Effect.fnUntraced(function* (
  directory: string,
  expected: BackupFile,
  advance: (bytes: number) => void
) {
  const read = attempt(`read ${expected.file}`, async () => {
    const hash = createHash("sha256")
    let bytes = 0
    for await (const chunk of chunksOf(directory, expected)) {
      hash.update(chunk)
      bytes += chunk.length
      advance(chunk.length)
    }
    return { bytes, sha256: hash.digest("hex") }
  })
  const found = yield* Effect.mapError(read, ({ message }) => {
    const advice = "the backup is incomplete without it: restore another one if the file is gone"
    return new BackupError({ message: `${message}: ${advice}` })
  })
  if (found.bytes !== expected.bytes)
    return yield* new BackupError({
      message: `${expected.file} has ${found.bytes} bytes instead of ${expected.bytes}: this backup is damaged, restore another one`
    })
  if (found.sha256 !== expected.sha256)
    return yield* new BackupError({
      message: `${expected.file} is not as it was written (its checksum differs): this backup is damaged, restore another one`
    })
})
