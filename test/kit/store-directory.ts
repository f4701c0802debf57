import { mkdtempSync, statfsSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const memory = "/dev/shm"
/** What the stores of several brokers may come to at a time, bytes. A container has 64 MiB there. */
const enough = 4 * 1024 ** 3

const hasSpace = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= enough
  } catch {
    return false
  }
}

/**
 * Where brokers and delivery logs of tests store: in memory if there is space. On a disk each broker
 * takes twice the CPU time, since it syncs every stream that it makes, and a delivery log takes five
 * times as long.
 */
const place = hasSpace() ? memory : tmpdir()

/** Makes a directory for what stores. The caller removes it. */
export const storeDirectory = (name: string): Promise<string> => mkdtemp(join(place, name))

/** The same at once. */
export const storeDirectorySync = (name: string): string => mkdtempSync(join(place, name))
