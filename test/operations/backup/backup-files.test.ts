import { existsSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeBackupFile } from "../../../src/operations/backup/backup-files.ts"

describe("a file of a backup", () => {
  // Nothing can be written to this one, as to a disk that is full.
  it.live.skipIf(!existsSync("/dev/full"))("says what to do where its disk is full", () =>
    Effect.gen(function* () {
      const written = writeBackupFile("/dev", "full", (writer) =>
        Effect.promise(() => writer.write(Buffer.from("a")))
      )
      const { message } = yield* Effect.flip(written)
      assert.strictEqual(
        message,
        "cannot write full: its disk is full: free some space, or give another folder"
      )
    })
  )
})
