import { Deferred, Effect, Schedule, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { BrokerError } from "../broker/broker-error.ts"
import { Caller } from "../operations/caller.ts"
import type { LiveMessage } from "../operations/history/live-failures.ts"
import { Stopping } from "./stopping.ts"
import { holdSlot, Slots } from "./tokens/caller-slots.ts"

/** Pause between the lines that keep a quiet connection open. */
const heartbeat = "15 seconds"
/** Pause between looks whether the token of a follower is still valid. */
const checkedEvery = "500 millis"

const bytes = (text: string): Uint8Array => Buffer.from(text, "utf8")

/** Pause before a client that was cut off comes back, ms. */
const reconnectMs = 2_000

/** Returns a server-sent event. JSON has no line breaks. */
const event = (name: string, data: object, id?: number): string =>
  `event: ${name}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`

/** Returns news as server-sent events. One without data only tells the client where it is. */
const asEvents = (news: LiveMessage): Uint8Array => {
  switch (news.tells) {
    case "position":
      return bytes(`id: ${news.seq}\n\n`)
    case "failure":
      return bytes(event("failure", { seq: news.seq, ...news.record }, news.seq))
    case "dropped": {
      const { tells: _, ...gap } = news
      return bytes(event("dropped", gap))
    }
  }
}

/** Answers with failures until the client leaves, its token is revoked, or the server stops. */
export const follow = Effect.fnUntraced(function* <R>(
  failures: Stream.Stream<LiveMessage, BrokerError, R>
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
  const lines = Stream.make(bytes(`: following\nretry: ${reconnectMs}\n\n`)).pipe(
    Stream.concat(Stream.map(failures, asEvents)),
    Stream.merge(beats),
    Stream.interruptWhen(Effect.raceFirst(Deferred.await(stopping), Effect.asVoid(invalid))),
    Stream.provideContext(context)
  )
  return HttpServerResponse.stream(lines, { contentType: "text/event-stream" })
})
