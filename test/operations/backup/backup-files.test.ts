import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeBackupFile } from "../../../src/operations/backup/backup-files.ts"

describe("a file of a backup", () => {
  // Nothing can be written to this one, as to a disk that is full. By a link, as a file that could not
  // be written is removed.
  it.live.skipIf(!existsSync("/dev/full"))("says what to do where its disk is full", () =>
    Effect.gen(function* () {
      const directory = mkdtempSync(join(tmpdir(), "petrel-test-full-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(directory, { recursive: true })))
      symlinkSync("/dev/full", join(directory, "full"))
      const written = writeBackupFile(directory, "full", (writer) =>
        Effect.promise(() => writer.write(Buffer.from("a")))
      )
      const { message } = yield* Effect.flip(written)
      assert.strictEqual(
        message,
        "cannot write full: its disk is full: free some space, or give another folder"
      )
      assert.deepStrictEqual(readdirSync(directory), [])
    })
  )
})
