import { Clock, Effect, Random, Result, Schema } from "effect"
import { commandOwner, TestExchange } from "../../cluster/command.ts"
import type { EndpointName } from "../../domain/endpoint.ts"
import { Invalid } from "../../domain/problem.ts"
import { eventTypeProblem } from "../../domain/type-filter.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { type Asker, maySeeAnswers, NotAllowed, withoutAnswer } from "../caller.ts"
import { readInput } from "../input.ts"

/** The event type of a test event. Publishers cannot use it: types of Petrel's own begin so. */
const testEventType = "petrel.test"

/**
 * The beginning of a test event's id, which Standard Webhooks signs: no signature of a test passes
 * for one of an event. The body is signed in all schemes, and only who may publish chooses it.
 */
const idPrefix = "petrel-test_"

/** Maximum bytes of a test event's body. */
const maxBodyBytes = 64 * 1024

const EventType = Schema.String.check(
  Schema.makeFilter((type: string) => {
    const problem = type === testEventType ? undefined : eventTypeProblem(type)
    return problem === undefined ? undefined : `must be one such as invoice.paid: ${problem}`
  })
)
const Body = Schema.String.check(
  Schema.makeFilter((body: string) =>
    Buffer.byteLength(body) <= maxBodyBytes ? undefined : `must be at most ${maxBodyBytes} bytes`
  )
)
const ContentType = Schema.String.check(
  Schema.makeFilter((text: string) =>
    /^[\x20-\x7e]{1,255}$/.test(text)
      ? undefined
      : "must be 1 to 255 ASCII characters, such as application/json"
  )
)

/** A test event. */
export const TestEvent = Schema.Struct({
  type: Schema.optional(EventType).annotateKey({ description: "(Default: petrel.test)" }),
  body: Schema.optional(Body).annotateKey({
    description: "(Default: a JSON object that says what it is)"
  }),
  contentType: Schema.optional(ContentType).annotateKey({
    description: "(Default: application/json)"
  })
})
export type TestEvent = typeof TestEvent.Type

/** What was sent to an endpoint as a test, and what it answered. */
export const TestReport = Schema.Struct({
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  id: Schema.String.annotateKey({ description: "The event's id, as the receiver sees it." }),
  type: Schema.String.annotateKey({ description: "The type of the event." }),
  body: Schema.String.annotateKey({ description: "The body that was sent." }),
  ...TestExchange.fields
})
export type TestReport = typeof TestReport.Type

/**
 * Sends one signed event that nobody has published to an endpoint, through the worker that delivers
 * to it, also where the endpoint is paused or disabled. It counts for nothing: neither health nor
 * limits nor the history know of it. The receiver sees the header `petrel-test: true`. Fails with
 * Invalid, EndpointNotFound, or CommandFailed where no worker does it; with NotAllowed for a type or
 * a body of the asker's own if the asker may not publish: the signature would vouch for it.
 */
export const testEndpoint = Effect.fnUntraced(function* (
  { id: endpoint, tenant }: EndpointName,
  event: TestEvent,
  { by, scopes }: Asker
) {
  const read = readInput(TestEvent, event)
  if (Result.isFailure(read)) return yield* new Invalid({ problems: read.failure })
  const isOwn = event.body !== undefined || (event.type ?? testEventType) !== testEventType
  if (isOwn && !scopes.includes("events:publish"))
    return yield* new NotAllowed({
      message: `a test with a body of its own or of another type than ${testEventType} needs the scope events:publish, since it is signed like what is published`
    })
  yield* getEndpoint(tenant, endpoint)
  const at = yield* Clock.currentTimeMillis
  const number = yield* Random.nextIntBetween(0, 36 ** 6)
  const id = `${idPrefix}${at.toString(36)}${number.toString(36)}`
  const { contentType = "application/json", type = testEventType } = event
  const body =
    event.body ??
    JSON.stringify({ type, id, message: "This is a test event from Petrel.", at: new Date(at) })
  const { tested } = yield* commandOwner(
    { _tag: "SendTest", tenant, endpoint, id, type, body, contentType },
    by
  )
  // Its owner answers each test.
  if (tested === undefined) return yield* Effect.die(new Error("a test without an answer"))
  const shown = maySeeAnswers({ scopes }) ? tested : withoutAnswer(tested)
  return { tenant, endpoint, id, type, body, ...shown } satisfies TestReport
})
