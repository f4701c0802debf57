import { readdir, readFile, stat, statfs } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import type { Disk } from "../../../broker/storage-limits.ts"
import { minStoreBytes, storeOn } from "../../../broker/storage-limits.ts"
import { bytesText } from "../../../operations/text/bytes.ts"
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
        message: `how much room the disk of ${data} has cannot be read (${cause instanceof Error ? cause.message : String(cause)})`
      })
  })
  const size = decideStore({ asked, ...found }, data)
  return size instanceof Refused ? yield* size : size
})
