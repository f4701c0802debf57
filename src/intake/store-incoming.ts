import { Effect, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { HeaderList } from "../broker/publication.ts"
import { isTooLarge, PublishError } from "../broker/publication.ts"
import type { IncomingEvent } from "../domain/intake.ts"
import { fetchedHeader, incomingMessage, incomingProblem } from "../domain/intake.ts"

/** Where INTAKE has an event, and since when. */
export interface StoredEvent {
  /** The sequence in INTAKE. */
  readonly seq: number
  /**
   * - `stored`: by this call.
   * - `repeated`: before, with the same bytes.
   * - `collided`: before, with other bytes. These are not stored. An API may write an event in
   *   other bytes than its webhook has: of an event that was fetched both are `repeated`.
   */
  readonly as: "stored" | "repeated" | "collided"
  /** Of `collided`: the bytes that are stored. */
  readonly before?: Uint8Array
}

/** An event is not known to be stored. */
export class NotStored extends Schema.TaggedError<NotStored>()("NotStored", {
  /**
   * - `invalid`: it can never be stored as it is.
   * - `too-large`: it is larger than INTAKE takes.
   * - `full`: INTAKE is full.
   * - `no-intake`: the installation has no INTAKE.
   * - `unanswered`: the broker did not answer; the event may be stored nonetheless.
   * - `refused`: the broker refused for another reason.
   */
  reason: Schema.Literals(["invalid", "too-large", "full", "no-intake", "unanswered", "refused"]),
  text: Schema.String
}) {
  override get message() {
    return this.text
  }
}

/** The stream's last message on the subject is not the expected one. */
const wrongLastSequence = 10071
/** The same, while another publish to the subject is under way in a cluster. */
const publishUnderWay = 10164
const storeFailed = 10077

/** How often a publish is tried that meets one which is under way, or a message that just left. */
const maxTries = 20
const retryPauseMs = 25

const notStored = (error: PublishError | BrokerError): NotStored => {
  const { code, message: text } = error
  if (!(error instanceof PublishError)) return new NotStored({ reason: "unanswered", text })
  const reason = isTooLarge(error)
    ? "too-large"
    : code === storeFailed
      ? "full"
      : error.reason === "no-stream"
        ? "no-intake"
        : error.reason === "rejected"
          ? "refused"
          : "unanswered"
  return new NotStored({ reason, text })
}

/** Returns the sequence that a refusal names, if it does. */
const namedSequence = ({ detail }: PublishError): number | undefined => {
  const [, seq] = /wrong last sequence: (\d+)/.exec(detail) ?? []
  return seq === undefined ? undefined : Number(seq)
}

/**
 * Stores an event in INTAKE exactly once, however often and from wherever it is called with the same
 * tenant, source and id: the broker takes a message only if it has none with the id. That holds for
 * as long as INTAKE keeps the event (`--intake-age`). EVENTS copies it from there.
 *
 * A failure other than `unanswered` says that this call stored nothing. After `unanswered`, call it
 * again with the same event.
 */
export const storeIncoming = Effect.fnUntraced(function* (event: IncomingEvent) {
  const { names, publish, readMessage } = yield* Broker
  const problem = incomingProblem(event)
  if (problem !== undefined) return yield* new NotStored({ reason: "invalid", text: problem })
  const { headers, sameId, subject } = incomingMessage(event, names)
  const list: HeaderList = [
    ["Nats-Expected-Last-Subject-Sequence", "0"],
    ["Nats-Expected-Last-Subject-Sequence-Subject", sameId],
    ...headers
  ]
  const isFetched = event.headers?.some(([name]) => name === fetchedHeader) === true
  const store = Effect.match(publish(subject, event.body, list), {
    onSuccess: ({ seq }) => seq,
    onFailure: (error) => error
  })
  for (let tries = 1; ; tries++) {
    const result = yield* store
    if (typeof result === "number") return { seq: result, as: "stored" } satisfies StoredEvent
    if (result.code !== wrongLastSequence && result.code !== publishUnderWay)
      return yield* notStored(result)
    const seq = namedSequence(result)
    const there = yield* Effect.mapError(
      readMessage(
        `look at an event in ${names.intake}`,
        names.intake,
        seq === undefined ? { last_by_subj: sameId } : { seq }
      ),
      notStored
    )
    if (there !== null) {
      const isSame =
        isFetched ||
        there.header.get(fetchedHeader) !== "" ||
        Buffer.compare(there.data, event.body) === 0
      return isSame
        ? ({ seq: there.seq, as: "repeated" } satisfies StoredEvent)
        : ({ seq: there.seq, as: "collided", before: there.data } satisfies StoredEvent)
    }
    if (tries === maxTries) return yield* notStored(result)
    yield* Effect.sleep(retryPauseMs)
  }
})
