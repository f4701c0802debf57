import { assert, describe, it } from "@effect/vitest"
import {
  BrokenFiles,
  isBroken,
  isUseless,
  NewerFiles,
  OlderFiles,
  OtherHistory,
  OtherInstallation,
  OtherWriter,
  problemOf,
  RemovedFiles
} from "../../src/projection/file-problems.ts"

/** An error as node:sqlite throws it. */
const sqliteError = (errcode: number, message: string) =>
  Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode })

describe("a problem with the files of the projection", () => {
  it.each([
    [sqliteError(13, "database or disk is full"), false, /no space is left for \/data: free some/],
    [sqliteError(11, "database disk image is malformed"), true, /a file in \/data is damaged/],
    [sqliteError(26, "file is not a database"), true, /a file in \/data is damaged/],
    [sqliteError(10 | (1 << 8), "disk I/O error"), false, /cannot be written \(disk I\/O error\)/],
    [new BrokenFiles("/data"), true, /a file in \/data is damaged/],
    [new OtherHistory("/data"), true, /the history is not the one/],
    [
      new OtherInstallation("/data", 7),
      false,
      /\/data has 7 rows of another installation.* drop these rows .*--replace-log/
    ],
    [new OlderFiles("/data"), true, /by an older version/],
    [new NewerFiles("/data"), false, /newer version of Petrel: use that one/],
    [new OtherWriter("/data"), false, /another console keeps its delivery log in \/data: give/],
    [new RemovedFiles("/data"), true, /files in \/data were removed/]
  ])("is one sentence: %s", (error, makesAnew, says) => {
    assert.match(problemOf(error, "/data"), says)
    assert.strictEqual(isUseless(error), makesAnew)
  })

  it("is damage only if a file is damaged", () => {
    assert.isTrue(isBroken(sqliteError(11 | (1 << 8), "malformed inside a table")))
    assert.isFalse(isBroken(new OtherHistory("/data")))
    assert.isFalse(isBroken("text"))
  })
})
