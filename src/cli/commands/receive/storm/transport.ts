import { request as plainRequest } from "node:http"
import { request as tlsRequest } from "node:https"
import { Agent, request } from "undici"
import { failureOf } from "../../../../delivery/http/failure.ts"
import type { SignedRequest } from "./senders.ts"

/** What a receiver said to a request. */
export interface Answer {
  /** Undefined if there was no answer. */
  readonly status: number | undefined
  /** Why there was none. */
  readonly problem?: string
  /** Until the answer came, or none could. */
  readonly ms: number
  /** Of Retry-After, ms. */
  readonly retryAfterMs?: number
}

/** Time-out of the receiver, ms: that of a patient sender. */
const answerWithinMs = 15_000

const retryAfterOf = (value: unknown): number | undefined => {
  const seconds = Number(value)
  return value !== undefined && Number.isFinite(seconds) && seconds >= 0
    ? seconds * 1_000
    : undefined
}

/** Sends requests to one URL, over connections of its own, until it is closed. */
export class Transport {
  readonly #url: URL
  readonly #agent: Agent

  /** @param connections at most. */
  constructor(url: string, connections: number) {
    this.#url = new URL(url)
    this.#agent = new Agent({
      connections,
      headersTimeout: answerWithinMs,
      bodyTimeout: answerWithinMs,
      connect: { timeout: answerWithinMs }
    })
  }

  /** Sends a request. Never rejects. */
  async send({ body, headers }: SignedRequest, signal: AbortSignal): Promise<Answer> {
    const begun = performance.now()
    try {
      const answer = await request(this.#url, {
        method: "POST",
        headers,
        body,
        signal,
        dispatcher: this.#agent
      })
      const ms = performance.now() - begun
      await answer.body.dump()
      const retryAfterMs = retryAfterOf(answer.headers["retry-after"])
      return {
        status: answer.statusCode,
        ms,
        ...(retryAfterMs !== undefined && { retryAfterMs })
      }
    } catch (error) {
      const { message: problem } = failureOf(error, false)
      return { status: undefined, problem, ms: performance.now() - begun }
    }
  }

  /** Sends the first half of a request, and closes the connection. Never rejects. */
  abort({ body, headers }: SignedRequest): Promise<void> {
    const begin = this.#url.protocol === "https:" ? tlsRequest : plainRequest
    return new Promise((resolve) => {
      const outgoing = begin(this.#url, {
        method: "POST",
        agent: false,
        timeout: answerWithinMs,
        headers: { ...headers, "content-length": body.length }
      })
      outgoing.on("error", () => resolve())
      outgoing.on("timeout", () => outgoing.destroy())
      outgoing.on("close", () => resolve())
      outgoing.write(body.subarray(0, Math.ceil(body.length / 2)), () => outgoing.destroy())
    })
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }
}
