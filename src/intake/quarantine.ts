import { createHash } from "node:crypto"
import type { StoredMsg } from "@nats-io/jetstream"
import { Clock, Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { isNoSuchMessage } from "../broker/broker-error.ts"
import type { HeaderList } from "../broker/publication.ts"
import { requireIntake } from "../broker/survey-intake.ts"
import type { Fact } from "../domain/fact.ts"
import type { IncomingEvent } from "../domain/intake.ts"
import { idOfBody, incomingProblem } from "../domain/intake.ts"
import { nobody } from "../domain/token.ts"
import { appendFact } from "../history/facts.ts"
import type { ProviderEvent } from "../providers/provider.ts"
import { keptOfRequest } from "./kept-headers.ts"
import { storeIncoming } from "./store-incoming.ts"

/**
 * Why something that came in is no event:
 * - `unreadable`: it was verified, and is not of the shape that its provider documents.
 * - `id-collision`: an event with the same id and other bytes came in before.
 * - `invalid`: it cannot be stored as an event.
 */
export const quarantineReasons = ["unreadable", "id-collision", "invalid"] as const
export type QuarantineReason = (typeof quarantineReasons)[number]

/** What is known of something in quarantine, beside its bytes. Times in ms since the epoch. */
const Note = Schema.Struct({
  source: Schema.String,
  provider: Schema.String,
  reason: Schema.Literals(quarantineReasons),
  /** One sentence. */
  problem: Schema.String,
  contentType: Schema.String,
  /** Headers of the request, in lower case, without those that authenticate it. */
  headers: Schema.Record(Schema.String, Schema.String),
  method: Schema.String,
  url: Schema.String,
  /** The sender's id and type, where it could be read. */
  id: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.String)
})
export type Note = typeof Note.Type

/** Something in quarantine, without its body. */
export interface QuarantinedNote extends Note {
  readonly tenant: string
  /** Its sequence in INTAKE. */
  readonly seq: number
  readonly at: number
  /** Size of its body. */
  readonly bytes: number
}

/** Something in quarantine. */
export interface Quarantined extends QuarantinedNote {
  readonly body: Uint8Array
}

/** There is nothing in quarantine under this number. */
export class NotQuarantined extends Schema.TaggedError<NotQuarantined>()("NotQuarantined", {
  tenant: Schema.String,
  seq: Schema.Int
}) {
  override get message() {
    return `${this.tenant} has no ${this.seq} in quarantine: \`petrel quarantine list ${this.tenant}\` shows what is there`
  }
}

/** What is in quarantine cannot be an event as it is. */
export class NotReleasable extends Schema.TaggedError<NotReleasable>()("NotReleasable", {
  message: Schema.String
}) {}

/** Characters of each text in a note, and bytes of a note: with its body it must fit into a message. */
const maxText = 1_000
const maxNoteBytes = 12 * 1024

const NoteJson = Schema.fromJsonString(Note)
const encode = Schema.encodeSync(NoteJson)
const decode = Schema.decodeUnknownOption(NoteJson)

const noteHeader = "petrel-quarantine"

/** Writes a note as a header. What makes it too long is left out: headers, then ends of texts. */
const noteText = (note: Note): string => {
  const headers = Object.entries(note.headers)
  let most = maxText
  while (true) {
    const texts = Object.entries({ ...note, headers: undefined }).flatMap(([name, text]) =>
      text === undefined ? [] : [[name, text.slice(0, most).toWellFormed()] as const]
    )
    const kept = headers.map(([name, text]) => [name, text.slice(0, most)] as const)
    const { reason } = note
    const short = { ...note, ...Object.fromEntries(texts), reason }
    const encoded = Buffer.from(encode({ ...short, headers: Object.fromEntries(kept) }))
    const text = encoded.toString("base64")
    if (text.length <= maxNoteBytes) return text
    if (headers.pop() === undefined) most = Math.floor(most / 2)
  }
}

/** Messages that are read at a time. */
const limits = { batch: 100, max_bytes: 4 * 1024 * 1024 }

const readMessage = (tenant: string, message: StoredMsg): Quarantined | undefined => {
  const text = Buffer.from(message.header.get(noteHeader), "base64").toString("utf8")
  const note = Option.getOrUndefined(decode(text))
  if (note === undefined) return undefined
  return {
    ...note,
    tenant,
    seq: message.seq,
    at: message.time.getTime(),
    bytes: message.data.length,
    body: message.data
  }
}

/**
 * Puts something that came in into quarantine. The same again within a minute is put there once: what
 * cannot be read has no id, and equal bodies may be two events, which the headers tell apart.
 * Fails where it is not known to be there: a tenant's quarantine holds `maxQuarantined`.
 */
export const quarantine = Effect.fnUntraced(function* (
  tenant: string,
  note: Note,
  body: Uint8Array
) {
  const { names, publish } = yield* Broker
  const id = createHash("sha256")
    .update(JSON.stringify([tenant, note.source, note.reason, note.id ?? "", note.headers]))
    .update(body)
    .digest("hex")
  const headers: HeaderList = [
    ["Nats-Msg-Id", id],
    // It stays for longer than events: until somebody has looked at it.
    ["Nats-TTL", "never"],
    [noteHeader, noteText(note)]
  ]
  return yield* publish(names.subjects.quarantine(tenant), body, headers)
})

/** Lists what a tenant has in quarantine, oldest first; bodies, which may be 1 MB each, are let go. */
export const listQuarantine = Effect.fnUntraced(function* (tenant: string) {
  yield* requireIntake
  const { batch, names } = yield* Broker
  const found: Array<QuarantinedNote> = []
  let next = 1
  while (true) {
    const messages = yield* batch(names.intake, names.subjects.quarantine(tenant), next, limits)
    for (const message of messages) {
      const one = readMessage(tenant, message)
      if (one === undefined) continue
      const { body: _, ...note } = one
      found.push(note)
    }
    const last = messages.at(-1)
    if (last === undefined) return found
    next = last.seq + 1
  }
})

/** Reads one thing in quarantine. Fails with NotQuarantined. */
export const readQuarantined = Effect.fnUntraced(function* (tenant: string, seq: number) {
  yield* requireIntake
  const broker = yield* Broker
  const { names } = broker
  const message = yield* broker.readMessage("look at what is in quarantine", names.intake, { seq })
  const found =
    message?.subject === names.subjects.quarantine(tenant)
      ? readMessage(tenant, message)
      : undefined
  return found ?? (yield* new NotQuarantined({ tenant, seq }))
})

/** Removes one thing from quarantine, and tells the history. */
const leave = Effect.fnUntraced(function* (
  kind: "quarantine-released" | "quarantine-discarded",
  { provider, reason, seq, source, tenant }: QuarantinedNote,
  by: string
) {
  const { deleteMessage, names } = yield* Broker
  const at = yield* Clock.currentTimeMillis
  const fact: Fact = {
    ...{ v: 1, kind, at, tenant, endpoint: nobody, by, reason },
    incoming: { source, provider, seq }
  }
  yield* appendFact(fact, `${kind}.${names.intake}.${seq}`)
  yield* Effect.catchIf(
    deleteMessage("remove what was in quarantine", names.intake, seq),
    isNoSuchMessage,
    () => Effect.void
  )
})

/** Discards something in quarantine for good. */
export const discardQuarantined = Effect.fnUntraced(function* (
  tenant: string,
  seq: number,
  by: string
) {
  const found = yield* readQuarantined(tenant, seq)
  yield* leave("quarantine-discarded", found, by)
  return found
})

/** How something is released. */
export interface Release {
  /** Of the event. (Default: the provider's, where it can be read now) */
  readonly type?: string | undefined
  /**
   * Reads the request as its source does now; undefined where that cannot. Left out where the source
   * was removed.
   */
  readonly read?: ((one: Quarantined) => ReadonlyArray<ProviderEvent> | undefined) | undefined
  /** True where two bodies of one id are the same event to the provider. (Default: if they are equal) */
  readonly isRepeat?: ((before: Uint8Array, body: Uint8Array) => boolean) | undefined
}

/** The id of an event whose own id another event has, with other bytes. */
const idBeside = (id: string, body: Uint8Array): string => `${id}~${idOfBody(body).slice(-12)}`

/** The events that something in quarantine becomes, each under an id that no other event has. */
const eventsOf = (one: Quarantined, { read, type }: Release): ReadonlyArray<ProviderEvent> => {
  const bytes = { body: one.body, contentType: one.contentType }
  if (one.reason === "id-collision")
    return [
      {
        ...bytes,
        id: idBeside(one.id ?? "", one.body),
        type: type ?? one.type ?? ""
      }
    ]
  // Something else in quarantine may have the same bytes.
  if (type !== undefined) return [{ ...bytes, id: `${idOfBody(one.body)}~${one.seq}`, type }]
  return read?.(one) ?? []
}

/** Stores an event under its id, or under one of its own if that is another event's. Returns the id. */
const storeReleased = Effect.fnUntraced(function* (
  event: IncomingEvent,
  isRepeat: Release["isRepeat"]
) {
  const { as, before } = yield* storeIncoming(event)
  if (as !== "collided") return event.id
  if (before !== undefined && isRepeat?.(before, event.body) === true) return event.id
  const id = idBeside(event.id, event.body)
  yield* storeIncoming({ ...event, id })
  return id
})

/**
 * Lets something in quarantine be one event or several, and removes it from there. What collided
 * with an event's id, or does so now, gets an id of its own, which begins with the first one.
 *
 * @param by who asks for it, recorded in the history.
 */
export const releaseQuarantined = Effect.fnUntraced(function* (
  tenant: string,
  seq: number,
  release: Release,
  by: string
) {
  const one = yield* readQuarantined(tenant, seq)
  const events = eventsOf(one, release).map((event) => ({
    tenant,
    source: one.source,
    id: event.id ?? idOfBody(event.body),
    type: event.type,
    body: event.body,
    contentType: event.contentType,
    ...keptOfRequest(one)
  }))
  if (events.length === 0) {
    const remedy = "give it a type (`petrel quarantine release --type`), or discard it"
    return yield* new NotReleasable({
      message:
        release.read === undefined
          ? `${seq} cannot be read without its source ${one.source}, which is no longer there: add that again, ${remedy}`
          : `${seq} cannot be read as its provider's documents say, still: ${remedy}`
    })
  }
  const problem = events.map(incomingProblem).find((text) => text !== undefined)
  if (problem !== undefined) return yield* new NotReleasable({ message: `${seq}: ${problem}` })
  const stored = yield* Effect.forEach(events, (event) =>
    Effect.map(storeReleased(event, release.isRepeat), (id) => ({ id, type: event.type }))
  )
  yield* leave("quarantine-released", one, by)
  return { ...one, events: stored }
})
