/*
 * What it costs to verify and to read a request of each provider.
 *
 * Usage: `node test/providers/cost.ts`
 */
import type { ReceivedRequest } from "../../src/providers/provider.ts"
import { type Sample, signedRequest } from "./sample.ts"
import { samples } from "./samples.ts"

const at = 1_900_000_000_000
const rounds = 4_000

/** Returns the µs of CPU of one call, in the fastest of five rounds. */
const cost = async (call: () => unknown): Promise<number> => {
  const measure = async (): Promise<number> => {
    const before = process.cpuUsage()
    for (let count = 0; count < rounds; count += 1) await call()
    const { system, user } = process.cpuUsage(before)
    return (system + user) / rounds
  }
  await measure()
  const measured: Array<number> = []
  for (let count = 0; count < 5; count += 1) measured.push(await measure())
  return Math.min(...measured)
}

/** Returns a sample with a body of some 1 KB. */
const padded = (sample: Sample): Sample => {
  const text = sample.body.toString()
  const filler = "a".repeat(1_024 - Math.min(1_000, text.length))
  const isJson = text.startsWith("[") || text.startsWith("{")
  const longer = isJson ? text.replace("{", `{"a":"${filler}",`) : `${text}&a=${filler}`
  return { ...sample, body: Buffer.from(longer) }
}

const rows: Array<Record<string, string>> = []
for (const sample of samples.map(padded)) {
  const { keys, make, name, variant } = sample
  const request: ReceivedRequest = await signedRequest(sample, at, keys[0])
  const one = make([keys[0].verifying])
  const two = make(keys.map(({ verifying }) => verifying).reverse())
  const found = await one.verify(request, at)
  if (!found.ok) throw new Error(`${name}: ${found.text}`)
  rows.push({
    provider: variant === undefined ? name : `${name} ${variant}`,
    bytes: String(request.body.length),
    "verify, µs": (await cost(() => one.verify(request, at))).toFixed(1),
    "verify by the second secret, µs": (await cost(() => two.verify(request, at))).toFixed(1),
    "read, µs": (await cost(() => one.read(request))).toFixed(1)
  })
}
console.table(rows)
