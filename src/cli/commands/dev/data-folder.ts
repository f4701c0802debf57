import { access, constants, readdir, readFile, stat, statfs } from "node:fs/promises"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Schema } from "effect"
import { Broker } from "../../../broker/broker.ts"
import { ifFound, streamNotFound } from "../../../broker/broker-error.ts"
import { makeDirectory } from "../../../broker/embedded/make-directory.ts"
import { init } from "../../../broker/init.ts"
import { readInstalled } from "../../../broker/installed.ts"
import {
  boundAfterResize,
  type Disk,
  minStoreBytes,
  sharesOf,
  storeOn
} from "../../../broker/storage-limits.ts"
import { defaultTopology } from "../../../broker/topology.ts"
import { bytesText } from "../../../text/quantities.ts"
import { Refused } from "../../refused.ts"

/** The inputs that determine the size of an embedded broker's store, in bytes. */
export interface StoreFacts {
  /** Given with `--store`. */
  readonly asked: number | undefined
  /** The size at the last start. */
  readonly former: number | undefined
  readonly disk: Disk
}

export interface StoreSize {
  readonly store: number
  readonly former: number | undefined
  /** Present if the disk has less space than the store may take. */
  readonly warning: string | undefined
}

/**
 * Returns how much of the disk the broker may use: the size given, else that of the last start,
 * else a share of the disk.
 *
 * @param data the directory as shown to people.
 * @returns a refusal if there is too little space.
 */
export const decideStore = (
  { asked, disk, former }: StoreFacts,
  data: string
): StoreSize | Refused => {
  const { free, used } = disk
  const remedy = "free some, or choose another directory with --data"
  if (asked !== undefined && asked !== former) {
    // The broker rejects even smaller reservations while its reservations exceed its limit.
    if (former !== undefined && asked < former)
      return new Refused({
        message: `--store ${bytesText(asked)} is less than the ${bytesText(former)} of the last start, and a store does not become smaller: leave it out, or choose another directory with --data`
      })
    if (asked < used)
      return new Refused({
        message: `--store ${bytesText(asked)} is less than the ${bytesText(used)} that ${data} holds`
      })
    if (asked > free + used)
      return new Refused({
        message: `--store ${bytesText(asked)} is more than the disk of ${data} has: ${bytesText(free)} are free`
      })
  }
  const store = asked ?? former ?? storeOn(disk)
  if (store < minStoreBytes)
    return new Refused({
      message: `the disk of ${data} has ${bytesText(free)} free and the broker needs ${bytesText(2 * minStoreBytes)}: ${remedy}`
    })
  const missing = store - used - free
  const warning =
    missing <= 0
      ? undefined
      : `the disk of ${data} has ${bytesText(free)} free, and the broker may take ${bytesText(store - used)} more: ${remedy}`
  return { store, former, warning }
}

/**
 * Returns the size of all files in a directory, 0 if it does not exist. Ignores files that vanish
 * meanwhile.
 */
const sizeOf = async (directory: string): Promise<number> => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        stat(join(entry.parentPath, entry.name)).then(
          ({ size }) => size,
          () => 0
        )
      )
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

const written = /max_file_store: (\d+)/

const look = async (dataDir: string, data: string) => {
  const { bavail, bsize } = await statfs(data)
  const configuration = await readFile(join(dataDir, "nats-server.conf"), "utf8").catch(() => "")
  const former = written.exec(configuration)?.[1]
  return {
    disk: { free: bavail * bsize, used: await sizeOf(join(dataDir, "jetstream")) },
    former: former === undefined ? undefined : Number(former)
  }
}

/**
 * Returns how much of the disk the broker of a data directory may use.
 *
 * @param dataDir the broker's subdirectory; may be missing.
 * @param data the data directory itself.
 * @param asked given with `--store`.
 */
export const storeSize = Effect.fnUntraced(function* (
  dataDir: string,
  data: string,
  asked: number | undefined
) {
  const found = yield* Effect.tryPromise({
    try: () => look(dataDir, data),
    catch: (cause) =>
      new Refused({
        message: `how much space the disk of ${data} has cannot be read (${cause instanceof Error ? cause.message : String(cause)})`
      })
  })
  const size = decideStore({ asked, ...found }, data)
  return size instanceof Refused ? yield* size : size
})

/** Returns the bytes of a stream; 0 if it does not exist. */
const heldIn = Effect.fnUntraced(function* (stream: string) {
  const { streamInfo } = yield* Broker
  const info = yield* ifFound(streamInfo(`look at stream ${stream}`, stream), streamNotFound)
  return info?.state.bytes ?? 0
})

/**
 * Creates missing streams with sizes that fit the store. Keeps the sizes that `petrel init` was
 * given.
 *
 * @returns the bytes that events may take, and what may be lost with streams that were there before.
 */
export const initDevStore = Effect.fnUntraced(function* ({ former, store }: StoreSize) {
  const { names } = yield* Broker
  const installed = yield* readInstalled
  const next = sharesOf(store)
  const before = former === undefined ? undefined : sharesOf(former)
  const bound = Effect.fnUntraced(function* (
    field: "eventBytes" | "historyBytes" | "intakeBytes",
    stream: string
  ) {
    const there = { bound: installed[field], held: yield* heldIn(stream) }
    return boundAfterResize(there, next[field], before?.[field])
  })
  const eventBytes = yield* bound("eventBytes", names.events)
  const historyBytes = yield* bound("historyBytes", names.history)
  const intakeBytes = yield* bound("intakeBytes", names.intake)
  const changes = yield* init({
    ...defaultTopology,
    deadBytes: next.deadBytes,
    ...installed,
    eventBytes,
    historyBytes,
    intakeBytes
  })
  const lost = changes.flatMap(({ lost: loss, what }) =>
    loss === undefined ? [] : [{ what, loss }]
  )
  return { eventBytes, lost }
})

/** A data directory is unusable. The message says what to do about it. */
class DataDirectoryError extends Schema.TaggedError<DataDirectoryError>()("DataDirectoryError", {
  message: Schema.String
}) {}

const busy = 5

const isBusy = (error: unknown): boolean =>
  error instanceof Error && "errcode" in error && error.errcode === busy

/**
 * Locks a data directory for this process until the scope closes. Creates it if missing.
 *
 * The lock is an open transaction on an empty SQLite file. The kernel releases it however the
 * process ends, so there is no stale lock to detect, and two processes that start at the same time
 * cannot both hold it.
 */
export const lockDataDirectory = Effect.fnUntraced(function* (directory: string) {
  yield* Effect.tryPromise({
    try: async () => {
      makeDirectory(directory)
      if (!(await stat(directory)).isDirectory()) throw new Error("it is not a directory")
      await access(directory, constants.W_OK)
    },
    catch: (cause) => unusable(directory, cause)
  })
  yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        const database = new DatabaseSync(join(directory, "dev.lock"), { timeout: 0 })
        try {
          database.exec("BEGIN EXCLUSIVE")
        } catch (error) {
          database.close()
          throw error
        }
        return database
      },
      catch: (cause) =>
        isBusy(cause)
          ? new DataDirectoryError({
              message: `another \`petrel dev\` is using ${directory}: stop that one, or choose another directory with --data`
            })
          : unusable(directory, cause)
    }),
    (database) => Effect.sync(() => database.close())
  )
})

const reasons: Readonly<Record<string, string>> = {
  EACCES: "it may not be written to",
  EPERM: "it may not be written to",
  EROFS: "its disk is read-only",
  ENOSPC: "its disk is full",
  ENOTDIR: "a part of its path is not a directory",
  ENOENT: "it cannot be made there"
}

const reasonOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const code = "code" in cause ? String(cause.code) : ""
  return reasons[code] ?? cause.message
}

const unusable = (directory: string, cause: unknown) =>
  new DataDirectoryError({
    message: `${directory} cannot be used for data (${reasonOf(cause)}): choose another directory with --data`
  })
