import { readFileSync, statSync } from "node:fs"

/** How long what was read is taken for true, ms. */
const refreshMs = 1_000

/** A small file of the system's configuration, whose changes count within a second. */
export class SystemFile {
  readonly #path: string
  #lookedAt = Number.NEGATIVE_INFINITY
  #version = ""
  #text = ""

  constructor(path: string) {
    this.#path = path
  }

  /** What it says: nothing where there is none, or none that may be read. */
  text(): string {
    const now = performance.now()
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
