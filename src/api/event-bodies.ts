import { isUtf8 } from "node:buffer"
import { Effect, Result } from "effect"
import { Broker } from "../broker/broker.ts"
import { Invalid, type Problem } from "../domain/problem.ts"
import type { NewEvent } from "../operations/events/new-event.ts"
import type { EventToPublish, Publication } from "../operations/events/publish-events.ts"
import { readInput } from "../operations/input.ts"
import { EventNotStored } from "../operations/refusals.ts"
import { bytesText } from "../text/quantities.ts"
import { EventInput, maxBatch } from "./event-input.ts"
import { type JsonElement, JsonScanner, withoutSpace } from "./json-scanner.ts"

/** An event of a request, or what is answered for it instead. */
export type ReadEvent = Result.Result<EventToPublish, Publication>

/** The events of a request, and whether it is answered as a batch. */
interface Publishing {
  readonly events: ReadonlyArray<ReadEvent>
  readonly isBatch: boolean
}

/** Bytes that are read without a break: some 2 ms. */
const sliceBytes = 128 * 1024
/** Fields of one event that are looked at. It has seven. */
const maxFields = 64
/** Upper bound of an event's fields other than its body, bytes: the broker takes less as headers. */
const maxOtherBytes = 64 * 1024
/** How many bytes of JSON one byte of a text takes at most: an escape of 6 letters. */
const longestEscape = 6

/** Does work slice by slice, until one returns true. Others have their turns in between. */
const inSlices = Effect.fnUntraced(function* (slice: () => boolean) {
  while (!slice()) yield* Effect.yieldNow
})

export const refused = (problems: ReadonlyArray<Problem>): Publication => ({
  _tag: "Refused",
  problems
})

const refuse = (field: string, message: string): ReadEvent =>
  Result.fail(refused([{ field, message }]))

const tooLarge = (bytes: number, most: number): ReadEvent =>
  Result.fail(
    new EventNotStored({
      reason: "too-large",
      message: `the event's ${bytesText(bytes)} are more than the ${bytesText(most)} that the broker takes: send a link to the data instead`
    })
  )

const bodyOf = ({ base64, text }: EventInput, data: Uint8Array): Uint8Array => {
  if (text !== undefined) return Buffer.from(text, "utf8")
  return base64 === undefined ? data : Buffer.from(base64, "base64")
}

const usualType = ({ base64, text }: EventInput): string => {
  if (text !== undefined) return "text/plain; charset=utf-8"
  return base64 === undefined ? "application/json" : "application/octet-stream"
}

/** Reads the events of a body that was found to be JSON. */
class EventReader {
  readonly #bytes: Uint8Array
  readonly #tenant: string
  /** Upper bound of an event's body, bytes. */
  readonly maxEvent: number
  /** Upper bound of what an event takes in JSON, bytes. More of it cannot be within the other. */
  readonly maxJson: number

  /** @param maxEvent bytes that the broker takes. */
  constructor(bytes: Uint8Array, tenant: string, maxEvent: number) {
    this.#bytes = bytes
    this.#tenant = tenant
    this.maxEvent = maxEvent
    this.maxJson = maxEvent * longestEscape + maxOtherBytes
  }

  read(element: JsonElement): ReadEvent {
    const { end, members, start } = element
    if (members.length > maxFields) return refuse("", `has more than ${maxFields} fields`)
    const fields = new Map<string, unknown>()
    let data: Uint8Array = new Uint8Array()
    let otherBytes = 0
    for (const member of members) {
      otherBytes += member.keyEnd - member.keyStart
      if (otherBytes > maxOtherBytes) return refuse("", otherTooLarge)
      const name = String(this.#parse(member.keyStart, member.keyEnd))
      const bytes = member.end - member.start
      const isText = this.#bytes[member.start] === 0x22 && (name === "text" || name === "base64")
      if (name === "data") {
        if (bytes > this.maxJson) return tooLarge(bytes, this.maxEvent)
        const json = this.#bytes.subarray(member.start, member.end)
        data = member.hasSpace ? withoutSpace(json) : json
        fields.set(name, null)
        continue
      }
      if (isText && bytes > this.maxJson) return tooLarge(bytes, this.maxEvent)
      if (!isText) otherBytes += bytes
      if (otherBytes > maxOtherBytes) return refuse("", otherTooLarge)
      fields.set(name, this.#parse(member.start, member.end))
    }
    // Its own kind is told of what is no object, and not what it is.
    const isObject = this.#bytes[start] === 0x7b
    const given = isObject ? Object.fromEntries(fields) : this.#shown(start, end)
    return Result.mapBoth(readInput(EventInput, given), {
      onFailure: refused,
      onSuccess: (input) => {
        const { contentType = usualType(input), headers, id, type } = input
        const event: NewEvent = { tenant: this.#tenant, type, id, contentType, headers }
        return { event, body: bodyOf(input, data) }
      }
    })
  }

  #parse(start: number, end: number): unknown {
    return JSON.parse(Buffer.from(this.#bytes.subarray(start, end)).toString("utf8"))
  }

  #shown(start: number, end: number): unknown {
    return end - start > maxOtherBytes ? [] : this.#parse(start, end)
  }
}

const otherTooLarge = `has more than ${bytesText(maxOtherBytes)} in addition to \`data\`, \`text\` and \`base64\``

const most = { elements: maxBatch, members: maxFields }

const tooMany: Problem = {
  field: "",
  message: `must have at most ${maxBatch} events: send several requests`
}

const failWith = (problem: Problem) => Effect.fail(new Invalid({ problems: [problem] }))

/** Reads each of the events, as many in a slice as are not large. */
const readEach = <Each>(
  items: ReadonlyArray<Each>,
  bytesOf: (item: Each) => number,
  read: (item: Each) => ReadEvent
) => {
  const events: Array<ReadEvent> = []
  const slice = () => {
    for (let bytes = 0; bytes < sliceBytes; ) {
      const item = items[events.length]
      if (item === undefined) return true
      bytes += bytesOf(item)
      events.push(read(item))
    }
    return false
  }
  return Effect.as(inSlices(slice), events)
}

const newline = 0x0a

/** A line, as places in the bytes. */
interface Line {
  readonly start: number
  readonly end: number
}

const isBlank = (bytes: Uint8Array, { end, start }: Line): boolean => {
  for (let at = start; at < end; at++) if ((bytes[at] ?? 0) > 0x20) return false
  return true
}

const readLines = Effect.fnUntraced(function* (bytes: Buffer, reader: EventReader) {
  const lines: Array<Line> = []
  let start = 0
  yield* inSlices(() => {
    const until = start + sliceBytes
    while (start < bytes.length && start < until && lines.length <= maxBatch) {
      const found = bytes.indexOf(newline, start)
      const line = { start, end: found === -1 ? bytes.length : found }
      if (!isBlank(bytes, line)) lines.push(line)
      start = line.end + 1
    }
    return start >= bytes.length || lines.length > maxBatch
  })
  if (lines.length > maxBatch) return yield* failWith(tooMany)
  const events = yield* readEach(
    lines,
    ({ end, start }) => end - start,
    ({ end, start }) => {
      if (end - start > reader.maxJson) return tooLarge(end - start, reader.maxEvent)
      const scanner = new JsonScanner(bytes, { ...most, elements: 1 }, start, end)
      while (!scanner.run(end - start));
      const { elements, isList, problem } = scanner
      const [element] = elements
      if (problem !== undefined) return refuse("", problem)
      return element === undefined || isList
        ? refuse("", "must be an object, one on each line")
        : reader.read(element)
    }
  )
  return { events, isBatch: true }
})

const readJson = Effect.fnUntraced(function* (bytes: Buffer, reader: EventReader) {
  const scanner = new JsonScanner(bytes, most)
  yield* inSlices(() => scanner.run(sliceBytes))
  const { elements, isList, problem } = scanner
  if (problem !== undefined) return yield* failWith({ field: "", message: problem })
  if (elements.length > maxBatch) return yield* failWith(tooMany)
  const events = yield* readEach(
    elements,
    ({ end, start }) => end - start,
    (element) => reader.read(element)
  )
  return { events, isBatch: isList }
})

const ndjson = /^application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines)$/

/**
 * Reads the events in the body of a request. How many there are is found before any of them is made
 * something of, and a large body is read in slices, so that others are answered meanwhile. Fails with
 * Invalid if the request as a whole is refused.
 */
export const readEvents = Effect.fnUntraced(function* (
  tenant: string,
  contentType: string,
  body: Uint8Array
): Effect.fn.Return<Publishing, Invalid, Broker> {
  if (!isUtf8(body))
    return yield* failWith({
      field: "",
      message: "must be UTF-8: send other bytes as `base64`"
    })
  const { server } = yield* Broker
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const reader = new EventReader(bytes, tenant, server().max_payload ?? body.length)
  const [media = ""] = contentType.toLowerCase().split(";")
  const publishing = yield* (ndjson.test(media.trim()) ? readLines : readJson)(bytes, reader)
  return publishing.events.length === 0
    ? yield* failWith({ field: "", message: "must have an event at least" })
    : publishing
})
