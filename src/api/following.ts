import { Deferred, Effect, Schedule, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { BrokerError } from "../broker/broker-error.ts"
import { Caller } from "../operations/caller.ts"
import type { LiveFailure } from "../operations/history/live-failures.ts"
import { Stopping } from "./stopping.ts"
import { holdSlot, Slots } from "./tokens/caller-slots.ts"

/** Pause between the lines that keep a quiet connection open. */
const heartbeat = "15 seconds"
/** Pause between looks whether the token of a follower is still valid. */
const checkedEvery = "500 millis"

const bytes = (text: string): Uint8Array => Buffer.from(text, "utf8")

/** Returns a failure as server-sent events. JSON has no line breaks. */
const asEvents = ({ dropped, record, seq }: LiveFailure): Uint8Array =>
  bytes(
    [
      ...(dropped === 0 ? [] : [`event: dropped\ndata: ${JSON.stringify({ dropped })}\n`]),
      `event: failure\nid: ${seq}\ndata: ${JSON.stringify({ seq, ...record })}\n`,
      ""
    ].join("\n")
  )

/** Answers with failures until the client leaves, its token is revoked, or the server stops. */
export const follow = Effect.fnUntraced(function* <R>(
  failures: Stream.Stream<LiveFailure, BrokerError, R>
) {
  const stopping = yield* Stopping
  const caller = yield* Caller
  yield* holdSlot((yield* Slots).streams, caller, {
    bound: "streams",
    things: "streams of failures",
    advice: "end some of them; one stream may follow all endpoints of the tenant"
  })
  const context = yield* Effect.context<R>()
  const invalid = Effect.repeat(Effect.sleep(checkedEvery), { until: () => !caller.isValid() })
  const beats = Stream.fromSchedule(Schedule.spaced(heartbeat)).pipe(
    Stream.map(() => bytes(": still there\n\n"))
  )
  const lines = Stream.make(bytes(": following\n\n")).pipe(
    Stream.concat(Stream.map(failures, asEvents)),
    Stream.merge(beats),
    Stream.interruptWhen(Effect.raceFirst(Deferred.await(stopping), Effect.asVoid(invalid))),
    Stream.provideContext(context)
  )
  return HttpServerResponse.stream(lines, { contentType: "text/event-stream" })
})
