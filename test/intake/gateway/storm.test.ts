import { assert, describe, it } from "@effect/vitest"
import { onTestFinished } from "vitest"
import type { Answer } from "../../../src/intake/gateway/answer.ts"
import { systemTimers, useTimers } from "../../../src/time/timers.ts"
import { bareHandler } from "../../kit/bare-handler.ts"

/**
 * What a gateway's thread takes for a request, ms: to read its head, to refuse it, to verify and
 * publish it, to answer it once the broker has. Twice what was measured on a quiet machine
 * (docs/internals/performance.md).
 */
const takes = { head: 0.03, refusal: 0.01, publish: 0.12, answer: 0.08 }
/** For a webhook that is taken. */
const wholeMs = takes.head + takes.publish + takes.answer
/** The broker takes one after the other, and its answers are on their way for a while, ms. */
const broker = { each: 0.08, way: 0.3 }
/** The sender's own thread takes so much for each answer and the next request, ms. */
const sendingMs = 0.08

interface Ready {
  /** When its socket can be read, ms. */
  readonly at: number
  readonly handle: () => void
}

/** Removes and returns what can be read, the earliest first. */
const takeReady = (all: Array<Ready>, now: number): ReadonlyArray<Ready> => {
  const ready = all.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at)
  const later = all.filter(({ at }) => at > now)
  all.splice(0, all.length, ...later)
  return ready
}

/** Lets promises settle. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/**
 * A gateway in a storm of one source, in time that passes only by what its thread does: connections
 * that send again once they are answered, far more than it can take. Its loop is Node's: timers, then
 * all that can be read, then immediates.
 */
const storm = async (connections: number, ms: number) => {
  let now = 1_000
  const end = now + ms
  const due: Array<Ready> = []
  const immediates: Array<() => void> = []
  onTestFinished(
    useTimers({
      ...systemTimers,
      monotonicMs: () => now,
      wallMs: () => now,
      after: <A>(delay: number, run: (of: A) => void, of?: A) => {
        const timer = { at: now + delay, handle: () => run(of as A), unref: () => undefined }
        due.push(timer)
        return timer
      },
      cancel: (timer) => {
        const index = due.indexOf(timer as unknown as Ready)
        if (index >= 0) due.splice(index, 1)
      },
      immediate: (run) => immediates.push(run)
    })
  )
  const requests: Array<Ready> = []
  const acknowledgements: Array<Ready> = []
  let brokerFree = 0
  const taken: Answer = { status: 200, outcome: "taken" }
  const { ask } = bareHandler(() => {
    now += takes.publish
    brokerFree = Math.max(brokerFree, now + broker.way / 2) + broker.each
    return new Promise((resolve) => {
      const handle = () => {
        now += takes.answer
        resolve(taken)
      }
      acknowledgements.push({ at: brokerFree + broker.way / 2, handle })
    })
  })
  let takenCount = 0
  const refusedMs: Array<number> = []
  let senderFree = now
  const send = () => {
    senderFree = Math.max(senderFree, now) + sendingMs
    const at = senderFree
    if (at > end) return
    const answered = (status: number) => {
      if (status === 503) {
        now += takes.refusal
        refusedMs.push(now - at)
      } else takenCount++
      send()
    }
    const handle = () => {
      now += takes.head
      ask(answered)
    }
    requests.push({ at, handle })
  }
  for (let n = 0; n < connections; n++) send()
  while (requests.length + acknowledgements.length + due.length > 0) {
    for (const { handle } of takeReady(due, now)) handle()
    // One socket has all of the broker's answers.
    const answers = takeReady(acknowledgements, now)
    const handleAnswers = () => {
      for (const { handle } of answers) handle()
    }
    const [first] = answers
    const ready = [
      ...takeReady(requests, now),
      ...(first === undefined ? [] : [{ at: first.at, handle: handleAnswers }])
    ].sort((a, b) => a.at - b.at)
    for (const { handle } of ready) {
      handle()
      await settled()
    }
    for (const run of immediates.splice(0)) run()
    const next = [...requests, ...acknowledgements, ...due].map(({ at }) => at)
    if (ready.length === 0 && next.length > 0) now = Math.max(now, Math.min(...next))
  }
  refusedMs.sort((a, b) => a - b)
  return {
    share: (takenCount * wholeMs) / (now - end + ms),
    refused: refusedMs.length,
    refusedP99: refusedMs[Math.floor(refusedMs.length * 0.99)] ?? 0
  }
}

describe("a gateway in a storm", () => {
  it("takes more than 80% of what it can, and refuses the rest within 50 ms", async () => {
    const { refused, refusedP99, share } = await storm(400, 1_000)
    assert.isAbove(refused, 1_000)
    assert.isAbove(share, 0.8)
    assert.isBelow(refusedP99, 50)
  })
})
