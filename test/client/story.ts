/* What a program does with a client, whatever that asks over, and whatever the program runs on. */
import type { Client, Job, PetrelProblem } from "../../src/client/client.ts"

/** Asks again until something holds. */
const until = async <A>(ask: () => Promise<A>, holds: (found: A) => boolean): Promise<A> => {
  for (;;) {
    const found = await ask()
    if (holds(found)) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const all = async <A>(list: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const found: Array<A> = []
  for await (const one of list) found.push(one)
  return found
}

/** Returns the code of the problem that something rejects with. */
const refusal = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => "not refused",
    (error: PetrelProblem) => `${error.name} ${error.status} ${error.code}: ${error.message}`
  )

/** Events of which the one at `wrong` has a type that is none. */
const events = (prefix: string, count: number, wrong: number) =>
  Array.from({ length: count }, (_, n) => ({
    type: n === wrong ? "in valid" : "invoice.paid",
    id: `${prefix}-${n}`,
    data: { n }
  }))

/** Looks what became of events in the log, and sends those again that failed. */
const looksAfter = async (petrel: Client, broken: string, isWell: () => Promise<void>) => {
  const dead = await until(
    () => all(petrel.deadLetters.list({ endpoint: broken, limit: 2 })),
    (found) => found.length === 3
  )
  const attempts = await until(
    () => all(petrel.log.attempts({ endpoint: broken, limit: 2 })),
    (found) => found.length === 3
  )
  const plan = await petrel.jobs.redeliver({ endpoint: broken, dryRun: true })
  await isWell()
  const seen: Array<Job["state"]> = []
  const begun = await petrel.jobs.redeliver({ endpoint: broken })
  const job = await petrel.finish(begun, {
    everyMs: 20,
    onProgress: ({ state }) => seen.push(state)
  })
  return {
    dead: dead.map(({ reason }) => reason),
    statuses: attempts.map(({ status }) => status),
    plan: plan.redeliver,
    job: { kind: job.kind, state: job.state, result: job.result },
    firstSeen: seen[0] === begun.state,
    lastSeen: seen.at(-1)
  }
}

/**
 * Adds endpoints, publishes, and sees what became of it.
 *
 * @param receiver refuses what comes on `/refused`, until `isWell` was called.
 * @param prefix of ids: another story on the same installation has another one.
 */
export const tellStory = async (
  petrel: Client,
  { isWell, prefix, receiver }: { receiver: string; prefix: string; isWell: () => Promise<void> }
) => {
  const [billing, broken] = [`${prefix}-billing`, `${prefix}-broken`]
  const types = ["invoice.paid", "order.placed"]
  const { revision } = await petrel.endpoints.put({ id: billing, url: receiver, types })
  const known = await petrel.endpoints.get({ id: billing }, { ifNoneMatch: revision })
  const changed = await petrel.endpoints.patch(
    { id: billing, maxInFlight: 3, contact: "ops@example.com" },
    { ifMatch: revision }
  )
  const stale = await refusal(
    petrel.endpoints.patch({ id: billing, maxInFlight: 4 }, { ifMatch: revision })
  )
  const missing = await refusal(petrel.endpoints.get({ id: "nobody" }))
  const invalid = await refusal(petrel.endpoints.put({ id: "other", url: "ftp://x" }))
  await petrel.endpoints.put({
    id: broken,
    url: `${receiver}/refused`,
    types: ["order.placed"],
    retry: {
      backoff: { kind: "fixed", delay: "1 millis" },
      jitter: "none",
      maxAttempts: 1,
      window: "1 minute"
    }
  })
  const one = { type: "invoice.paid", id: `${prefix}-one`, data: { total: "10.00" } }
  const first = await petrel.publish(one)
  const again = await petrel.publish(one)
  const outcomes: Array<number> = []
  const summary = await petrel.publishAll(events(prefix, 25, 7), {
    batch: 10,
    onOutcome: ({ answer }) => outcomes.push(answer.status)
  })
  for (const n of [1, 2, 3])
    await petrel.publish({ type: "order.placed", id: `${prefix}-order-${n}`, data: n })
  const delivered = await until(
    () => all(petrel.log.list({ endpoint: billing, state: "delivered", limit: 10 })),
    (found) => found.length >= 25 + 3
  )
  const body = await petrel.deliveries.eventBody({ event: first.id })
  return {
    ...{ known, stale, missing, invalid, outcomes },
    changed: changed.changed,
    first: { duplicate: first.duplicate, id: first.id },
    again: again.duplicate,
    summary: { ...summary, failures: summary.failures.map(({ event }) => event.id) },
    delivered: new Set(delivered.map(({ event }) => event)).size,
    body: new TextDecoder().decode(body.body),
    ...(await looksAfter(petrel, broken, isWell))
  }
}
