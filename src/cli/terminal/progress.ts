import { Effect } from "effect"
import type { RoundCounts } from "../../rounds/round.ts"
import { bytesText, countText } from "../../text/quantities.ts"
import { timers } from "../../time/timers.ts"
import { cutTo } from "../format/screen.ts"
import { visible } from "../format/visible.ts"
import { coloured, Output, remark } from "./stdout.ts"

/** Width of a bar, columns. */
const width = 30
/** Minimum time between redraws, ms. */
const redrawMs = 100
/** Interval between looks at a long read on a terminal, and between lines without one, ms. */
const lookMs = 200
const lineMs = 10_000

const erase = "\r\u001b[2K"

/** A progress bar on one line of a terminal. */
export interface Bar {
  readonly total: (count: number) => void
  readonly advance: (count: number, label?: string) => void
  /** Sets the description of the current step. */
  readonly label: (text: string) => void
  readonly show: (done: number, total: number, label: string) => void
  /** Erases the bar before other output. */
  readonly clear: () => void
}

const barLine = (done: number, total: number, label: string): string => {
  const share = total === 0 ? 0 : Math.min(1, done / total)
  const full = Math.floor(share * width)
  const numbers = `${countText(done)} of ${countText(total)}`
  const percent = `${Math.floor(share * 100)}%`.padStart(4)
  return `${"█".repeat(full)}${"░".repeat(width - full)} ${percent}  ${numbers}  ${label}`
}

/** Returns a bar on the terminal of stderr; undefined without one, or if `json` is to be printed. */
export const makeBar = (json: boolean): Bar | undefined => {
  const out = process.stderr
  if (!out.isTTY || json) return undefined
  let [done, total, label] = [0, 0, ""]
  let drawnAt = 0
  let isDrawn = false
  const draw = (isUrgent: boolean) => {
    const now = performance.now()
    if (!isUrgent && now - drawnAt < redrawMs) return
    drawnAt = now
    isDrawn = true
    const line = visible(total === 0 ? label : barLine(done, total, label))
    // A terminal whose size nobody has set says 0.
    const fitting = cutTo(Math.max(10, (out.columns || 80) - 1), line)
    out.write(`${erase}${coloured() ? `\u001b[36m${fitting}\u001b[39m` : fitting}`)
  }
  return {
    total: (count) => {
      total = count
      label = ""
      draw(true)
    },
    advance: (count, text = label) => {
      done += count
      label = text
      // Messages may be added meanwhile, such as schedules that fire.
      total = Math.max(total, done)
      draw(done === total)
    },
    label: (text) => {
      label = text
      draw(true)
    },
    show: (...now) => {
      ;[done, total, label] = now
      draw(true)
    },
    clear: () => {
      if (isDrawn) out.write(erase)
      isDrawn = false
    }
  }
}

/** Number of messages read, and in total. */
export interface ReadingProgress {
  readonly done: number
  readonly all: number
}

/** Erases the bar before other output. The bar is redrawn below it. */
export const clearProgress = Effect.sync(() => {
  if (process.stderr.isTTY) process.stderr.write(erase)
})

/**
 * Runs a long read and shows its progress: a bar on a terminal, otherwise a line now and then.
 *
 * @param look returns undefined while the total is unknown.
 */
export const showingProgress = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  look: () => ReadingProgress | undefined
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const bar = makeBar(false)
    const tell = Effect.suspend(() => {
      const read = look()
      if (read === undefined) return Effect.void
      if (bar !== undefined)
        return Effect.sync(() => bar.show(read.done, read.all, "messages read"))
      return remark(`read ${countText(read.done)} of ${countText(read.all)} messages`)
    })
    const telling = Effect.forever(Effect.delay(tell, bar === undefined ? lineMs : lookMs))
    return Effect.raceFirst(work, Effect.ensuring(telling, clearProgress))
  })

/** Shows the progress of a long operation that sends. */
interface SendingProgress {
  readonly total: (count: number) => void
  readonly advance: () => void
  /**
   * Reports that the operation is throttled because `waiting` deliveries wait for an endpoint; 0:
   * it continues.
   */
  readonly held: (endpoint: string, waiting: number) => void
  readonly clear: () => void
}

/** Returns a bar on a terminal. Otherwise, throttling is reported as a line. */
export const makeProgress = (json: boolean): Effect.Effect<SendingProgress> =>
  Effect.map(Output, ({ stderr }) => {
    const bar = makeBar(json)
    const reported = new Set<string>()
    return {
      total: (count) => {
        if (count > 0) bar?.total(count)
      },
      advance: () => bar?.advance(1),
      held: (endpoint, waiting) => {
        if (bar !== undefined) return bar.label(waiting === 0 ? "" : `held: ${endpoint} is busy`)
        if (waiting === 0 || reported.has(endpoint)) return
        reported.add(endpoint)
        stderr.write(
          `${countText(waiting)} wait for ${visible(endpoint)}: the others are sent as these go out\n`
        )
      },
      clear: () => bar?.clear()
    }
  })

/**
 * Runs what shows its progress, and clears it.
 *
 * @param brokenOff returns how to continue if it fails or is interrupted; undefined: nothing is
 *   left.
 */
export const showing = <A, E, R>(
  progress: SendingProgress,
  work: Effect.Effect<A, E, R>,
  brokenOff: () => string | undefined
): Effect.Effect<A, E, R> => {
  const stopped = Effect.suspend(() => {
    const text = brokenOff()
    return text === undefined ? Effect.void : remark(text)
  })
  return work.pipe(
    Effect.ensuring(Effect.sync(progress.clear)),
    Effect.onInterrupt(() => stopped),
    Effect.tapError(() => stopped)
  )
}

const noRounds: RoundCounts = { begun: 0, finished: 0, before: 0, gone: 0 }

/**
 * Sends rounds and shows their progress. Returns the result and the counts.
 *
 * @param brokenOff returns how to continue, if it ends before all are sent.
 */
export const watchRounds = <A, E, R>(
  run: (progress: (counts: RoundCounts) => void) => Effect.Effect<A, E, R>,
  total: number,
  progress: SendingProgress,
  brokenOff: (counts: RoundCounts) => string
) =>
  Effect.suspend(() => {
    let counts = noRounds
    progress.total(total)
    const work = run((now) => {
      counts = now
      progress.advance()
    })
    return Effect.map(
      showing(progress, work, () => {
        const handled = Object.values(counts).reduce((sum, count) => sum + count, 0)
        return handled < total ? brokenOff(counts) : undefined
      }),
      (done) => ({ done, counts })
    )
  })

const mebibyte = 1024 * 1024

/** Shows how many bytes of a long copy are done: a bar on a terminal, otherwise a line now and then. */
export const makeCopyBar = (json: boolean) =>
  Effect.map(Output, ({ stderr }) => {
    const bar = makeBar(json)
    let total = 0
    let what = ""
    let saidAt = timers.monotonicMs()
    const show = (bytes: number) => {
      if (bar !== undefined)
        return bar.show(
          Math.floor(bytes / mebibyte),
          Math.ceil(total / mebibyte),
          `MiB  ${visible(what)}`
        )
      const now = timers.monotonicMs()
      if (json || now - saidAt < lineMs) return
      saidAt = now
      stderr.write(`${bytesText(bytes)} of ${bytesText(total)} done: ${visible(what)}\n`)
    }
    let drawnAt = 0
    return {
      total: (bytes: number) => {
        total = bytes
      },
      /** Sets what is copied now. */
      label: (text: string) => {
        what = text
      },
      at: (bytes: number) => {
        const now = timers.monotonicMs()
        if (now - drawnAt < 100) return
        drawnAt = now
        show(bytes)
      },
      clear: Effect.sync(() => bar?.clear())
    }
  })
