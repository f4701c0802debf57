import { Effect } from "effect"
import type { Agent } from "undici"
import { type AttemptRequest, startAttempt } from "../../src/delivery/attempt.ts"
import type { AttemptResult } from "../../src/domain/outcome.ts"

/** One attempt as an effect; interruption ends it. */
export const attempt = (agent: Agent, request: AttemptRequest) =>
  Effect.callback<AttemptResult>((resume) => {
    const running = startAttempt(agent, request, (result) => resume(Effect.succeed(result)))
    return Effect.sync(() => running.interrupt())
  })
