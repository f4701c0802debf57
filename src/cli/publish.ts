import { Effect, Option, Random, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Broker } from "../broker/connection.ts"
import type { PublishError } from "../broker/publisher.ts"
import { bytesText } from "../operations/text/bytes.ts"
import { repeated } from "./endpoint-flags.ts"
import type { Publication } from "./publication.ts"
import { publication } from "./publication.ts"
import { Refused, refusal } from "./refused.ts"
import { connected, report } from "./root-command.ts"
import { readStdin } from "./stdin.ts"

/** No broker accepts larger messages, whatever its configuration. */
const maxBodyBytes = 64 * 1024 * 1024

const makeId = Effect.gen(function* () {
  const digits = Effect.map(Random.nextIntBetween(0, 2 ** 32), (number) =>
    number.toString(16).padStart(8, "0")
  )
  return `evt_${yield* digits}${yield* digits}${yield* digits}`
})

const tooLarge = 10054
/**
 * JetStream error code: the stream cannot store the message. For streams created by `init`: it is
 * full.
 */
const notStored = 10077

/** Returns what the publisher can do about an event that was not stored, or may not have been. */
const explained = Effect.fnUntraced(function* (
  error: PublishError,
  { id }: Publication,
  bytes: number
) {
  const { connection, jsm, names } = yield* Broker
  if (error.reason === "timeout")
    return new Refused({
      message: `the broker did not say within 5 s that it has the event, and it may have it: publish it again with --id ${id}, which cannot store it twice`
    })
  if (error.reason === "no-stream")
    return new Refused({
      message: `no stream on this broker takes ${error.subject}: run \`petrel init\`, or name the installation with --prefix and --events`
    })
  if (error.code === notStored)
    return new Refused({
      message: `${names.events} does not store the event (${error.detail}): \`petrel status\` says when there is room again; publish it again then with --id ${id}`
    })
  const most = connection.info?.max_payload ?? Number.POSITIVE_INFINITY
  if (error.code !== tooLarge && bytes < most) return new Refused({ message: error.message })
  const limit = yield* Effect.tryPromise(() => jsm.streams.info(names.events)).pipe(
    Effect.map(({ config }) => config.max_msg_size ?? most),
    Effect.orElseSucceed(() => most)
  )
  return new Refused({
    message: `the event's ${bytesText(bytes)} and its headers are more than the ${bytesText(limit)} that ${names.events} takes: send a link to the data instead, or raise the broker's max_payload (${bytesText(most)}) and run \`petrel init\``
  })
})

const maybe = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.optional,
    Flag.map(Option.getOrUndefined)
  )

/** Publishes one event in the way that any NATS client can. */
export const publish = Command.make(
  "publish",
  {
    tenant: Argument.String("TENANT").pipe(Argument.withDescription("Whose event it is")),
    type: Argument.String("TYPE").pipe(Argument.withDescription("Such as invoice.paid")),
    body: Argument.String("BODY").pipe(
      Argument.withDescription("What is sent, byte for byte; - reads standard input")
    ),
    id: maybe(
      "id",
      "ID",
      "The same id within 10 minutes is the same event; begins with the tenant, else it is put in front (default: a new one)"
    ),
    contentType: maybe(
      "content-type",
      "TYPE",
      "What receivers are told that it is (default: application/json)"
    ),
    header: repeated("header", "'NAME: VALUE'", "Such as a traceparent; may be repeated")
  },
  Effect.fnUntraced(function* ({ body, ...flags }) {
    const checked = publication(flags, yield* makeId)
    if (Result.isFailure(checked)) return yield* refusal(checked.failure)
    const event = checked.success
    const bytes = body === "-" ? yield* readStdin(maxBodyBytes) : Buffer.from(body, "utf8")
    if (event.unsent.length > 0)
      yield* Effect.logWarning(
        `${event.unsent.join(", ")}: kept with the event, but receivers get only content-type, traceparent and tracestate`
      )
    const { ack, isDirect } = yield* Effect.gen(function* () {
      const { names, publisher } = yield* Broker
      const subject = `${names.eventRoot}.${event.tenant}.${event.type}`
      const ack = yield* publisher
        .publish(subject, bytes, event.headers)
        .pipe(
          Effect.catch((error) =>
            Effect.flatMap(explained(error, event, bytes.length), Effect.fail)
          )
        )
      return { ack, isDirect: ack.stream === names.events }
    }).pipe(Effect.provide(connected))
    if (ack.duplicate)
      yield* Effect.logWarning(
        `the broker has an event of this id already, stored as ${ack.seq}: nothing new was published`,
        { id: event.id }
      )
    yield* report(
      {
        id: event.id,
        tenant: event.tenant,
        type: event.type,
        // In a stream that EVENTS is sourced from, the sequence differs from the event's.
        ...(isDirect ? { seq: ack.seq } : {}),
        duplicate: ack.duplicate
      },
      event.id
    )
  })
).pipe(
  Command.withDescription("Publish an event"),
  Command.withExamples([
    { command: `petrel publish acme invoice.paid '{"total":42}' --id invoice-42-paid` },
    { command: "petrel publish acme report.ready - --content-type text/csv < report.csv" }
  ])
)
