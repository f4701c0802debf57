import { rmSync } from "node:fs"
import { afterEach } from "vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { ProjectionStore } from "../../src/projection/projection-store.ts"
import { randomOf } from "../kit/random-facts.ts"
import { storeDirectorySync } from "../kit/store-directory.ts"

/**
 * Returns what makes the files of a delivery log of facts, in many small segments and in batches of
 * random length. Each is removed at the end of its test.
 */
export const logFiles = () => {
  const directories: Array<string> = []
  afterEach(() => {
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
  })
  return (facts: ReadonlyArray<Fact>, seed: number): string => {
    const directory = storeDirectorySync("petrel-log-")
    directories.push(directory)
    const random = randomOf(seed)
    const store = new ProjectionStore({ directory, keepMs: 1e12, maxBytes: 60_000 })
    for (const [index, fact] of facts.entries()) {
      store.take(JSON.stringify(fact), index + 1, `${fact.at}000000`)
      if (random() < 0.05) store.commit()
    }
    store.commit()
    store.close()
    return directory
  }
}
