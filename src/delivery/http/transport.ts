import type { Agent } from "undici"
import type { AttemptResult } from "../../domain/outcome.ts"
import type { AttemptRequest, Running } from "./attempt.ts"
import { AfterParsing, startAttempt } from "./attempt.ts"

/** Makes the requests of attempts. */
export interface HttpTransport {
  /** Starts one attempt, and calls `done` once with its result, unless it is interrupted. */
  start(request: AttemptRequest, done: (result: AttemptResult) => void): Running
}

/** Sends each tenant's requests with the HTTP client that may reach what the tenant may reach. */
export class AgentTransport implements HttpTransport {
  readonly #agentOf: (tenant: string) => Agent
  readonly #mayKeep: (tenant: string) => boolean
  readonly #afterParsing = new AfterParsing()

  /** @param mayKeep true where a tenant's connection may stay open after its answer. */
  constructor(agentOf: (tenant: string) => Agent, mayKeep: (tenant: string) => boolean) {
    this.#agentOf = agentOf
    this.#mayKeep = mayKeep
  }

  start(request: AttemptRequest, done: (result: AttemptResult) => void): Running {
    const { tenant } = request
    const agent = this.#agentOf(tenant)
    return startAttempt(agent, request, done, this.#mayKeep(tenant), this.#afterParsing)
  }
}
