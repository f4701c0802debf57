import { access, constants, stat } from "node:fs/promises"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Schema } from "effect"
import { Broker } from "../../../broker/broker.ts"
import { ifFound, streamNotFound } from "../../../broker/broker-error.ts"
import { makeDirectory } from "../../../broker/embedded/make-directory.ts"
import { init } from "../../../broker/init.ts"
import { readInstalled } from "../../../broker/installed.ts"
import { boundAfterResize, sharesOf } from "../../../broker/storage-limits.ts"
import { defaultTopology } from "../../../broker/topology.ts"
import type { StoreSize } from "./store.ts"

/** Returns the bytes of a stream; 0 if it does not exist. */
const heldIn = Effect.fnUntraced(function* (stream: string) {
  const { streamInfo } = yield* Broker
  const info = yield* ifFound(streamInfo(`look at stream ${stream}`, stream), streamNotFound)
  return info?.state.bytes ?? 0
})

/**
 * Creates missing streams with sizes that fit the store. Keeps the sizes that `petrel init` was
 * given.
 */
export const initDevStore = Effect.fnUntraced(function* ({ former, store }: StoreSize) {
  const { names } = yield* Broker
  const installed = yield* readInstalled
  const next = sharesOf(store)
  const before = former === undefined ? undefined : sharesOf(former)
  const bound = Effect.fnUntraced(function* (field: "eventBytes" | "historyBytes", stream: string) {
    const there = { bound: installed[field], held: yield* heldIn(stream) }
    return boundAfterResize(there, next[field], before?.[field])
  })
  const eventBytes = yield* bound("eventBytes", names.events)
  const historyBytes = yield* bound("historyBytes", names.history)
  yield* init({
    ...defaultTopology,
    deadBytes: next.deadBytes,
    ...installed,
    eventBytes,
    historyBytes
  })
  return { eventBytes }
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
      await makeDirectory(directory)
      if (!(await stat(directory)).isDirectory()) throw new Error("it is no directory")
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
  ENOTDIR: "a part of its path is no directory",
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
