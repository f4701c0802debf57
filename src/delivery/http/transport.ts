import type { Agent } from "undici"
import type { AttemptResult } from "../../domain/outcome.ts"
import type { AttemptRequest, Running } from "./attempt.ts"
import { startAttempt } from "./attempt.ts"

/** Makes the requests of attempts. */
export interface HttpTransport {
  /** Starts one attempt, and calls `done` once with its result, unless it is interrupted. */
  start(request: AttemptRequest, done: (result: AttemptResult) => void): Running
}

/** Sends each tenant's requests with the HTTP client that may reach what the tenant may reach. */
export class AgentTransport implements HttpTransport {
  readonly #agentOf: (tenant: string) => Agent

  constructor(agentOf: (tenant: string) => Agent) {
    this.#agentOf = agentOf
  }

  start(request: AttemptRequest, done: (result: AttemptResult) => void): Running {
    return startAttempt(this.#agentOf(request.tenant), request, done)
  }
}
