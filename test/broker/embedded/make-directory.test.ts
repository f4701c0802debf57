import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { makeDirectory } from "../../../src/broker/embedded/make-directory.ts"

const inFolder = (story: (folder: string) => void) => () => {
  const folder = mkdtempSync(join(tmpdir(), "petrel-"))
  try {
    story(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const modeOf = (path: string) => statSync(path).mode & 0o777

describe("a directory", () => {
  it(
    "is made with those above it",
    inFolder((folder) => {
      makeDirectory(join(folder, "a/b"), 0o700)
      assert.deepStrictEqual(
        [modeOf(join(folder, "a")), modeOf(join(folder, "a/b"))],
        [0o700, 0o700]
      )
    })
  )

  it(
    "stays as it is where it is there",
    inFolder((folder) => {
      mkdirSync(join(folder, "a"), { mode: 0o755 })
      makeDirectory(join(folder, "a"), 0o700)
      assert.strictEqual(modeOf(join(folder, "a")), 0o755)
    })
  )

  it(
    "cannot be made in a file",
    inFolder((folder) => {
      writeFileSync(join(folder, "file"), "")
      assert.throws(() => makeDirectory(join(folder, "file/a")), /ENOTDIR/)
    })
  )

  it.runIf(process.platform === "linux")("cannot be made in /proc, and says so at once", () => {
    assert.throws(() => makeDirectory("/proc/petrel/a"), /ENOENT/)
  })
})
