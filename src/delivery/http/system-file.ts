import { readFileSync, statSync } from "node:fs"
import { timers } from "../../time/timers.ts"

/** How long the content is cached, ms. */
const refreshMs = 1_000

/** A small system configuration file. A change of the file applies within a second. */
export class SystemFile {
  readonly #path: string
  #lookedAt = Number.NEGATIVE_INFINITY
  #version = ""
  #text = ""

  constructor(path: string) {
    this.#path = path
  }

  /** Returns the content; an empty string where the file is missing or unreadable. */
  text(): string {
    const now = timers.monotonicMs()
    if (now - this.#lookedAt < refreshMs) return this.#text
    this.#lookedAt = now
    try {
      const { ino, mtimeMs, size } = statSync(this.#path)
      const version = `${ino} ${size} ${mtimeMs}`
      if (version !== this.#version) this.#text = readFileSync(this.#path, "utf8")
      this.#version = version
    } catch {
      this.#version = ""
      this.#text = ""
    }
    return this.#text
  }
}
