import type { Socket } from "node:net"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Agent } from "undici"
import { type AttemptRequest, startAttempt } from "../../../src/delivery/http/attempt.ts"
import { type AgentOptions, agent } from "../../../src/delivery/http/connector.ts"
import type { AttemptResult } from "../../../src/domain/outcome.ts"
import { targetOf } from "../../../src/endpoints/target.ts"

const local = (ip: string) =>
  ip === "127.0.0.1" || ip === "::ffff:127.0.0.1" ? undefined : "address"

/** A client that may connect to 127.0.0.1 alone, unless it is told otherwise. */
export const client = (options: Partial<AgentOptions> = {}) => agent({ refuses: local, ...options })

/** A request as an endpoint with a header of its own gets it. */
export const post = (url: string, overrides: Partial<AttemptRequest> = {}): AttemptRequest => ({
  tenant: "acme",
  target: targetOf(url),
  headers: ["content-type", "application/json", "webhook-id", "evt_1", "webhook-signature", "v1,x"],
  ownHeaders: ["authorization", "Bearer of the endpoint"],
  body: Buffer.from('{"a":1}'),
  timeoutMs: 5000,
  connectTimeoutMs: 10_000,
  redirects: 3,
  redirectsTo: [],
  ...overrides
})

/** One attempt as an effect; interruption ends it. */
export const attempt = (agent: Agent, request: AttemptRequest) =>
  Effect.callback<AttemptResult>((resume) => {
    const running = startAttempt(agent, request, (result) => resume(Effect.succeed(result)))
    return Effect.sync(() => running.interrupt())
  })

/** The error of an attempt; fails the test where there is none. */
export const errorOf = (result: AttemptResult) => {
  assert.isDefined(result.error, `no error in ${JSON.stringify(result)}`)
  return result.error ?? { class: "none", message: "" }
}

/** For a `tcpServer`: answers with these bytes, be they HTTP or not, and leaves the connection open. */
export const answered = (raw: string) => (socket: Socket) => {
  socket.once("data", () => socket.write(raw))
}
