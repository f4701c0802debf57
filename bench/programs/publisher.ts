/*
 * Publishes events: as fast as the broker acknowledges them, or on a schedule.
 *
 * Usage: `publisher.ts <nats url>`, then jobs as messages.
 */
import { now, stamp, stampLength } from "./clock.ts"
import type { Latency } from "./latency.ts"
import { makeLatencies } from "./latency.ts"
import { connectNats } from "./nats-socket.ts"
import { openLoop } from "./schedule.ts"

/** A job: the events to publish. */
export interface Publishing {
  /** `*` is replaced by a number below `subjects`, in turn. */
  readonly subject: string
  readonly subjects: number
  readonly count: number
  /** Length of a body. */
  readonly bytes: number
  /**
   * Publishes on a schedule. Each body begins with the time that it was due. (Default: as fast as
   * events are acknowledged)
   */
  readonly perSecond?: number
}

/** The result: ms until all events were acknowledged, and how late scheduled events were sent. */
export interface Published {
  readonly ms: number
  readonly late: Latency
}

/** Limits of the unacknowledged events and bytes. */
const mostEvents = 512
const mostBytes = 16 * 1024 * 1024

let publishedBefore = 0
let acknowledged = 0
let onAcknowledged: () => void = () => undefined
const broker = await connectNats(process.argv[2] ?? "", () => {
  acknowledged++
  onAcknowledged()
})

const publish = async ({ bytes, count, perSecond, subject, subjects }: Publishing) => {
  const late = makeLatencies()
  const begun = now()
  const stamped = perSecond !== undefined
  const rest = Buffer.from(`${"x".repeat(bytes - (stamped ? stampLength : 0))}\r\n`)
  const names = Array.from({ length: subjects }, (_, n) => subject.replace("*", String(n)))
  const send = (number: number, begin: string) => {
    const id = `bench-${process.pid}-${publishedBefore + number}`
    broker.publish(names[number % subjects] ?? subject, id, begin, rest)
  }
  acknowledged = 0
  const all = new Promise<void>((resolve) => {
    const window = Math.max(1, Math.min(mostEvents, Math.floor(mostBytes / bytes)))
    let sent = 0
    let planned = false
    const fill = () =>
      broker.together(() => {
        planned = false
        while (sent < count && sent - acknowledged < window) send(sent++, "")
      })
    onAcknowledged = () => {
      if (acknowledged >= count) return resolve()
      if (stamped || planned) return
      planned = true
      setImmediate(fill)
    }
    if (!stamped) fill()
  })
  if (stamped)
    await openLoop(perSecond, count, (number, due) => {
      send(number, stamp(due))
      late.record(now() - due)
    })
  await all
  publishedBefore += count
  const published: Published = { ms: now() - begun, late: late.read() }
  process.send?.(published)
}

process.on("message", (job: Publishing) => void publish(job))
process.once("disconnect", () => process.exit(0))
process.send?.({})
