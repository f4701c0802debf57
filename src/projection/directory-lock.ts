import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { makeDirectory } from "../broker/embedded/make-directory.ts"
import { isBusy, OtherWriter } from "./file-problems.ts"

/**
 * Holds a directory for its one writer. The lock is the operating system's, through SQLite: it ends
 * with the process that has it, however that ends, and leaves nothing behind that hinders another.
 */
export class DirectoryLock {
  readonly #db: DatabaseSync

  /** Takes the lock, in a directory that it makes. @throws OtherWriter, or an error of SQLite. */
  constructor(directory: string) {
    makeDirectory(directory, 0o700)
    this.#db = new DatabaseSync(join(directory, "lock"))
    try {
      this.#db.exec("BEGIN EXCLUSIVE")
    } catch (error) {
      this.#db.close()
      throw isBusy(error) ? new OtherWriter(directory) : error
    }
  }

  close(): void {
    this.#db.close()
  }
}
