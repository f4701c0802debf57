/** A member of an object, as places in the bytes. */
interface JsonMember {
  /** Of its name, with the quotes. */
  readonly keyStart: number
  readonly keyEnd: number
  readonly start: number
  end: number
  /** True if there is white space outside of texts in its value. */
  hasSpace: boolean
}

/** A value of a list, or the only one. */
export interface JsonElement {
  readonly start: number
  end: number
  /** Its members, if it is an object. */
  readonly members: Array<JsonMember>
}

/** How deep JSON may be nested. Parsers of receivers seldom take more. */
export const maxJsonDepth = 512

/** What may come next. */
const atValue = 0
const atValueOrEnd = 1
const atKey = 2
const atKeyOrEnd = 3
const atColon = 4
const atCommaOrEnd = 5
const atEnd = 6

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const isDigit = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= 0x30 && byte <= 0x39

const isHex = (byte: number | undefined): boolean =>
  isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)

const words = ["true", "false", "null"].map((word) => Buffer.from(word))

/** The letters after a backslash, but for u: `"\/bfnrt`. */
const escapes: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'))

/** Returns the end of the digits that begin at a place; -1 if there is none. */
const digitsEnd = (bytes: Uint8Array, start: number): number => {
  let at = start
  while (isDigit(bytes[at])) at++
  return at === start ? -1 : at
}

/** Returns the end of the number that begins at a place; -1 if there is none. */
const numberEnd = (bytes: Uint8Array, start: number): number => {
  const first = bytes[start] === 0x2d ? start + 1 : start
  let at = bytes[first] === 0x30 ? first + 1 : digitsEnd(bytes, first)
  if (at !== -1 && bytes[at] === 0x2e) at = digitsEnd(bytes, at + 1)
  if (at !== -1 && ((bytes[at] ?? 0) | 0x20) === 0x65) {
    const sign = bytes[at + 1]
    at = digitsEnd(bytes, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
  }
  return at
}

/** Returns the end of the text whose quote is at a place; -1 if there is none. */
const textEnd = (bytes: Uint8Array, start: number): number => {
  for (let at = start + 1; ; at++) {
    const byte = bytes[at]
    if (byte === 0x22) return at + 1
    if (byte === undefined || byte < 0x20) return -1
    if (byte !== 0x5c) continue
    at++
    if (bytes[at] === 0x75) {
      for (const end = at + 4; at < end; at++) if (!isHex(bytes[at + 1])) return -1
    } else if (!escapes.has(bytes[at] ?? 0)) return -1
  }
}

/**
 * Checks that bytes are one JSON value, as JSON.parse does, and finds the values of its list, or
 * itself, with their members. It makes nothing of what is inside: that costs the same for each byte,
 * whatever the bytes are. Bytes must be valid UTF-8.
 */
export class JsonScanner {
  readonly #bytes: Uint8Array
  readonly #end: number
  readonly #elements: Array<JsonElement> = []
  /** What is open, from the outermost: true for an object. */
  readonly #open: Array<boolean> = []
  readonly #maxElements: number
  readonly #maxMembers: number
  #at: number
  #next = atValue
  #isList = false
  #hadSpace = false
  #key: readonly [start: number, end: number] = [0, 0]
  #problem: string | undefined

  /**
   * @param bytes of which those from `start` to `end` are scanned.
   * @param most elements of a list, and members of each that are told: one more of either is found.
   */
  constructor(
    bytes: Uint8Array,
    most: { readonly elements: number; readonly members: number },
    start = 0,
    end = bytes.length
  ) {
    this.#bytes = bytes
    this.#maxElements = most.elements
    this.#maxMembers = most.members
    this.#at = start
    this.#end = end
  }

  /** True if the value is a list. */
  get isList(): boolean {
    return this.#isList
  }

  /** The values that were found. */
  get elements(): ReadonlyArray<JsonElement> {
    return this.#elements
  }

  /** Why the bytes are refused. */
  get problem(): string | undefined {
    return this.#problem
  }

  /**
   * Goes on for at least so many bytes. Returns true once it has ended: at the end of the bytes, at a
   * problem, or when there are more elements than are wanted.
   */
  run(count: number): boolean {
    const until = Math.min(this.#end, this.#at + count)
    while (this.#at < until) {
      if (isSpace(this.#bytes[this.#at])) {
        this.#at++
        this.#hadSpace = true
      } else if (!this.#step() || this.#elements.length > this.#maxElements) return true
    }
    if (this.#at < this.#end) return false
    return this.#next === atEnd || this.#fail()
  }

  #fail(why = `is not valid JSON: look at byte ${this.#at + 1}`): true {
    this.#problem = why
    return true
  }

  /** Takes the next token. Returns false where there is none that may come. */
  #step(): boolean {
    const byte = this.#bytes[this.#at] ?? 0
    switch (this.#next) {
      case atColon:
        if (byte !== 0x3a) break
        this.#at++
        this.#next = atValue
        return true
      case atCommaOrEnd:
        if (byte !== 0x2c) return this.#close(byte)
        this.#at++
        this.#next = this.#open.at(-1) === true ? atKey : atValue
        return true
      case atKey:
      case atKeyOrEnd:
        if (byte === 0x22) return this.#takeKey()
        if (this.#next === atKeyOrEnd) return this.#close(byte)
        break
      case atValue:
        return this.#takeValue(byte)
      case atValueOrEnd:
        return byte === 0x5d ? this.#close(byte) : this.#takeValue(byte)
    }
    return !this.#fail()
  }

  #takeKey(): boolean {
    const end = textEnd(this.#bytes, this.#at)
    if (end === -1 || end > this.#end) return !this.#fail()
    this.#key = [this.#at, end]
    this.#at = end
    this.#next = atColon
    return true
  }

  #takeValue(byte: number): boolean {
    const isOpening = byte === 0x7b || byte === 0x5b
    if (this.#open.length === 0 && byte === 0x5b) this.#isList = true
    else this.#begin()
    if (isOpening) {
      if (this.#open.length === maxJsonDepth)
        return !this.#fail(`is nested deeper than ${maxJsonDepth} levels`)
      this.#open.push(byte === 0x7b)
      this.#at++
      this.#next = byte === 0x7b ? atKeyOrEnd : atValueOrEnd
      return true
    }
    const end = this.#scalarEnd(byte)
    if (end === -1 || end > this.#end) return !this.#fail()
    this.#at = end
    this.#ended()
    return true
  }

  #scalarEnd(byte: number): number {
    const at = this.#at
    if (byte === 0x22) return textEnd(this.#bytes, at)
    if (byte === 0x2d || isDigit(byte)) return numberEnd(this.#bytes, at)
    const word = words.find((one) => one[0] === byte)
    return word?.every((letter, index) => this.#bytes[at + index] === letter) === true
      ? at + word.length
      : -1
  }

  #close(byte: number): boolean {
    const isObject = this.#open.at(-1)
    if (isObject === undefined || byte !== (isObject ? 0x7d : 0x5d)) return !this.#fail()
    this.#open.pop()
    this.#at++
    this.#ended()
    return true
  }

  /** How many levels are around an element. */
  get #around(): number {
    return this.#isList ? 1 : 0
  }

  /** Notes a value that begins, if it is an element or a member of one. */
  #begin(): void {
    const within = this.#open.length - this.#around
    const start = this.#at
    if (within === 0) this.#elements.push({ start, end: start, members: [] })
    else if (within === 1 && this.#open.at(-1) === true) {
      const members = this.#elements.at(-1)?.members ?? []
      this.#hadSpace = false
      if (members.length <= this.#maxMembers) {
        const [keyStart, keyEnd] = this.#key
        members.push({ keyStart, keyEnd, start, end: start, hasSpace: false })
      }
    }
  }

  /** Notes a value that has ended. */
  #ended(): void {
    const within = this.#open.length - this.#around
    this.#next = this.#open.length === 0 ? atEnd : atCommaOrEnd
    const element = this.#elements.at(-1)
    if (within < 0 || element === undefined) return
    if (within === 0) element.end = this.#at
    const member = within === 1 && this.#open.at(-1) === true ? element.members.at(-1) : undefined
    if (member === undefined || member.end > member.start) return
    member.end = this.#at
    member.hasSpace = this.#hadSpace
  }
}

/** Returns JSON without the white space outside of its texts. The bytes must be valid JSON. */
export const withoutSpace = (json: Uint8Array): Uint8Array => {
  const kept = Buffer.allocUnsafe(json.length)
  let length = 0
  for (let at = 0; at < json.length; ) {
    if (isSpace(json[at])) {
      at++
      continue
    }
    const end = json[at] === 0x22 ? textEnd(json, at) : at + 1
    while (at < end) kept[length++] = json[at++] ?? 0
  }
  return kept.subarray(0, length)
}
