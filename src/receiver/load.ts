import { monotonicMs } from "./machine.ts"

/** Requests and bodies in memory, bounded by source before they are bounded in all. */
export interface Load {
  /** Takes a place for a request. Undefined where there is none; else what gives it back. */
  readonly enter: (source: string) => Visit | undefined
  readonly inFlight: () => number
}

export interface Visit {
  /** Takes capacity for so many bytes more. False if there is none. */
  readonly take: (bytes: number) => boolean
  readonly leave: () => void
}

interface Use {
  requests: number
  bytes: number
}

/** @param sources how many share the places: one alone has all of them, one of several half. */
export const makeLoad = (sources: number, maxInFlight: number, maxBytes: number): Load => {
  const share = sources === 1 ? 1 : 0.5
  const all: Use = { requests: 0, bytes: 0 }
  const bySource = new Map<string, Use>()
  const of = (source: string): Use => {
    const use = bySource.get(source) ?? { requests: 0, bytes: 0 }
    bySource.set(source, use)
    return use
  }
  return {
    inFlight: () => all.requests,
    enter: (source) => {
      const own = of(source)
      if (all.requests >= maxInFlight || own.requests >= Math.max(1, maxInFlight * share))
        return undefined
      let bytes = 0
      all.requests += 1
      own.requests += 1
      return {
        take: (more) => {
          if (all.bytes + more > maxBytes || own.bytes + more > maxBytes * share) return false
          bytes += more
          all.bytes += more
          own.bytes += more
          return true
        },
        leave: () => {
          all.requests -= 1
          own.requests -= 1
          all.bytes -= bytes
          own.bytes -= bytes
        }
      }
    }
  }
}

/** Places for work, of which one of several sources has half at most: what others have stored does not wait behind it. */
export interface Places {
  /** Returns the sources that may have more work, and how many events of any of them there are places for. */
  readonly open: () => { readonly sources: ReadonlyArray<string>; readonly limit: number }
  readonly take: (source: string) => void
  readonly giveBack: (source: string) => void
}

export const makePlaces = (sources: ReadonlyArray<string>, places: number): Places => {
  const most = sources.length === 1 ? places : Math.ceil(places / 2)
  const taken = new Map(sources.map((source) => [source, 0]))
  const change = (source: string, by: number) => taken.set(source, (taken.get(source) ?? 0) + by)
  return {
    open: () => {
      const free = places - [...taken.values()].reduce((sum, count) => sum + count, 0)
      const open = [...taken].filter(([, count]) => count < most)
      const limit = Math.min(free, ...open.map(([, count]) => most - count))
      return { sources: open.map(([source]) => source), limit: open.length === 0 ? 0 : limit }
    },
    take: (source) => {
      change(source, 1)
    },
    giveBack: (source) => {
      change(source, -1)
    }
  }
}

/** A rate by source. Takes a second's worth at once. */
export interface Rate {
  /** Takes places for events. Returns 0, or after how many ms there are some. */
  readonly take: (events: number) => number
}

export const makeRate = (perSecond: number): Rate => {
  let available = perSecond
  let at = monotonicMs()
  return {
    take: (events) => {
      const now = monotonicMs()
      available = Math.min(perSecond, available + ((now - at) / 1_000) * perSecond)
      at = now
      // A batch of more than a second's worth is taken where a whole second's worth is there.
      const wanted = Math.min(events, perSecond)
      if (available < wanted) return Math.ceil(((wanted - available) / perSecond) * 1_000)
      available -= events
      return 0
    }
  }
}
