/** A generator of random numbers (sfc32). The same seed gives the same numbers. */
export class Chance {
  #a: number
  #b = 0x9e3779b9
  #c = 0x243f6a88
  #d = 1

  constructor(seed: number) {
    this.#a = seed | 0
    for (let i = 0; i < 12; i++) this.next()
  }

  /** Returns a number of at least 0 and below 1. */
  next(): number {
    const t = (((this.#a + this.#b) | 0) + this.#d) | 0
    this.#d = (this.#d + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (this.#c << 21) | (this.#c >>> 11)
    this.#c = (this.#c + t) | 0
    return (t >>> 0) / 4294967296
  }

  /** Returns a whole number of at least 0 and below another. */
  int(below: number): number {
    return Math.floor(this.next() * below)
  }

  /** Draws nothing for a share of 0: a fault that is switched off changes nothing else. */
  isHit(share: number): boolean {
    return share > 0 && this.next() < share
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low)
  }

  pick<A>(list: ReadonlyArray<A>): A {
    return list[this.int(list.length)] as A
  }
}

/** FNV-1a, continued from `hash`. */
export const hashOf = (text: string, hash = 0x811c9dc5): number => {
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/**
 * Returns a generator of its own for a place that draws: what is left out elsewhere does not change
 * what it draws.
 */
export const chanceOf = (...place: ReadonlyArray<string | number>): Chance =>
  new Chance(hashOf(place.join(" ")))
