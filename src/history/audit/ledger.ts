import { firstRound } from "../../domain/delivery.ts"
import type { Step } from "../fold/round.ts"
import { afterStep, hasEnded, isBegun, stepOfKind, untold } from "../fold/round.ts"
import { Block, eventsPerBlock } from "./block.ts"
import { DeadEnds } from "./dead-ends.ts"
import type { Lane } from "./lanes.ts"
import { Lanes } from "./lanes.ts"
import type { About, Loose, LoosePlan } from "./record.ts"
import { aboutOf, numberIn, planOf, textIn } from "./record.ts"

/** What is audited. Sequences in EVENTS, inclusive; times in ms since the epoch, inclusive. */
export interface Scope {
  readonly firstEvent: number
  readonly lastEvent: number
  /** Events below it are gone: whether they are meant, the time of what began their rounds says. */
  readonly firstKept: number
  readonly since: number
  readonly until: number
  /** Only this one's. */
  readonly tenant?: string | undefined
  /** No fact is gone that an outcome could refer to. */
  readonly isWhole: boolean
}

/** Marks in what a block keeps of an event's plan; below them the number of parts read. */
const isThere = 1 << 15
const isComplete = 1 << 14
const lacksPart = 1 << 13
const parts = lacksPart - 1

/** A mark of ours in a round's number. */
const waits = 1 << 13

/** Facts between two looks for blocks that can be made small. */
const pause = 1 << 16

const isOpen = (state: number): boolean => isBegun(state) && !hasEnded(state)

/** Where something stands that was waited for and had not ended. */
export interface OpenRound extends Lane {
  readonly eventSeq: number
}

/** Something that a fact says and that cannot be. */
export type Objection = "unreadable-fact" | "plans-differ"

/**
 * The rounds of all deliveries within a scope, by event: what the facts say of each in some ten
 * bytes, and six once it has ended well.
 */
export class Ledger {
  scope: Scope
  readonly lanes = new Lanes()
  readonly deadEnds = new DeadEnds()
  readonly #blocks = new Map<number, Block>()
  readonly #unpacked = new Set<Block>()
  #facts = 0
  /** Attempts that are told of, with those that were repeated. */
  attempts = 0
  skipped = new Map<string, number>()
  /**
   * Rounds that began after the last look at what waits had begun, by {@link roundName}: nobody has
   * looked for them yet. Undefined where all that begins is still to be looked for.
   */
  #newcomers: Set<string> | undefined
  /** What `missing` facts tell of, by {@link roundName}. */
  readonly raised = new Set<string>()
  /** Facts about what began before the scope. */
  earlier = 0

  constructor(scope: Scope) {
    this.scope = scope
  }

  /** From now on what waits is looked at: what begins later is looked for the next time. */
  beginLooking(): void {
    this.#newcomers = new Set()
    this.#forgetFound()
  }

  /** Takes in that an event is stored. */
  event(seq: number): void {
    const block = this.#block(seq)
    const at = seq % eventsPerBlock
    block.plans[at] = (block.plans[at] ?? 0) | isThere
  }

  /** Takes in a fact; says where it cannot be. */
  fact(record: Loose, storedAt: number): Objection | undefined {
    if (++this.#facts % pause === 0) this.#pack()
    const { kind } = record
    const step = stepOfKind.get(kind)
    if (step === undefined && kind !== "unroutable" && kind !== "missing") return undefined
    const about = aboutOf(record)
    if (about === undefined) return "unreadable-fact"
    const { tenant } = this.scope
    if (tenant !== undefined && about.tenant !== tenant) return undefined
    if (kind === "routed") {
      const plan = planOf(record)
      return plan === undefined ? "unreadable-fact" : this.#routed(about, plan, storedAt)
    }
    if (kind === "unroutable") {
      if (this.#isMeant(about.eventSeq, storedAt)) this.#mark(about.eventSeq, isComplete)
    } else if (step === undefined) this.raised.add(roundName(about))
    else this.#step(about, step, record, storedAt)
    return undefined
  }

  /** Takes in that a round waits in a stream; false where it has ended, or is not meant. */
  found({ endpoint, eventSeq, round, tenant }: About): boolean {
    const block = this.#blocks.get(Math.floor(eventSeq / eventsPerBlock))
    if (block === undefined || block.open === 0) return false
    const lane = this.lanes.of(tenant, endpoint, round)
    const at = eventSeq % eventsPerBlock
    const state = block.get(at, lane)
    if (!isOpen(state)) return false
    block.set(at, lane, state | waits)
    return true
  }

  /** Where a round stands. */
  stateOf({ endpoint, eventSeq, round, tenant }: About): number {
    const block = this.#blocks.get(Math.floor(eventSeq / eventsPerBlock))
    return block?.get(eventSeq % eventsPerBlock, this.lanes.of(tenant, endpoint, round)) ?? untold
  }

  /** All rounds, with their state. */
  each(see: (eventSeq: number, lane: number, state: number) => void): void {
    for (const [number, block] of this.#blocks)
      block.each((offset, lane, state) => see(number * eventsPerBlock + offset, lane, state))
  }

  /** Rounds that have begun and not ended. */
  open(): { readonly found: number; readonly lost: ReadonlyArray<OpenRound> } {
    const lost: Array<OpenRound> = []
    let found = 0
    for (const [number, block] of this.#blocks) {
      if (block.open === 0) continue
      block.each((offset, lane, state) => {
        if (!isOpen(state)) return
        const round = { ...this.lanes.get(lane), eventSeq: number * eventsPerBlock + offset }
        if ((state & waits) !== 0 || this.#newcomers?.has(roundName(round)) === true) found++
        else lost.push(round)
      })
    }
    return { found, lost }
  }

  #forgetFound(): void {
    for (const block of this.#blocks.values()) {
      if (block.open === 0) continue
      block.each((offset, lane, state) => {
        if ((state & waits) !== 0) block.set(offset, lane, state & ~waits)
      })
    }
  }

  /** Events whose plan is not there, or not all of it. */
  unplanned(): ReadonlyArray<{ readonly eventSeq: number; readonly isBegun: boolean }> {
    const found: Array<{ readonly eventSeq: number; readonly isBegun: boolean }> = []
    for (const [number, { plans }] of this.#blocks)
      for (const [offset, plan] of plans.entries()) {
        if (plan === 0) continue
        const isBegun = (plan & ~isThere) !== 0
        if ((plan & isComplete) === 0 || (plan & lacksPart) !== 0)
          found.push({ eventSeq: number * eventsPerBlock + offset, isBegun })
      }
    return found
  }

  /** Takes back what routing began of earlier events: what the facts said of them has expired. */
  beginAt(firstEvent: number): void {
    this.scope = { ...this.scope, firstEvent, isWhole: false }
    for (const block of this.#blocks.values()) {
      if (block.first >= firstEvent) continue
      block.open = 0
      block.keep((offset, lane, state) => {
        const isKept =
          block.first + offset >= firstEvent ||
          (isBegun(state) && this.lanes.get(lane).round !== firstRound)
        if (isKept && isOpen(state)) block.open++
        return isKept
      })
      block.plans.fill(0, 0, Math.min(eventsPerBlock, firstEvent - block.first))
    }
  }

  /** Lets go of what ended well long ago, so that to follow the history for months costs no memory. */
  forgetSettled(): void {
    this.#pack()
    const numbers = [...this.#blocks.keys()].sort((a, b) => a - b)
    for (const number of numbers) {
      if (this.#blocks.get(number)?.isPacked !== true) break
      this.#blocks.delete(number)
      const firstEvent = Math.max(this.scope.firstEvent, (number + 1) * eventsPerBlock)
      this.scope = { ...this.scope, firstEvent, isWhole: false }
    }
  }

  #routed(about: About, plan: LoosePlan, storedAt: number): Objection | undefined {
    const { eventSeq, tenant } = about
    if (!this.#isMeant(eventSeq, storedAt)) return undefined
    const block = this.#block(eventSeq)
    const at = eventSeq % eventsPerBlock
    const known = block.plans[at] ?? 0
    const isAgain = plan.part < (known & parts)
    if (!isAgain) {
      const lacks = plan.part > (known & parts) ? lacksPart : 0
      const marks = (known & ~parts) | lacks | (plan.last ? isComplete : 0)
      block.plans[at] = marks | Math.min(plan.part + 1, parts)
      for (const { reason } of plan.skipped)
        this.skipped.set(reason, (this.skipped.get(reason) ?? 0) + 1)
    }
    let differs = false
    for (const { id } of plan.endpoints) {
      const lane = this.lanes.of(tenant, id, firstRound)
      differs ||= isAgain && !isBegun(block.get(at, lane))
      this.#change(block, at, lane, "begun")
    }
    return differs ? "plans-differ" : undefined
  }

  #step(about: About, step: Step, record: Loose, storedAt: number): void {
    const { endpoint, eventSeq, round, tenant } = about
    if (!this.#isKnown(about, step, storedAt)) {
      this.earlier++
      return
    }
    const lane = this.lanes.of(tenant, endpoint, round)
    const block = this.#block(eventSeq)
    const attempt = numberIn(record.attempt)
    if (step === "attempt-failed" || step === "delivered") this.attempts++
    this.#change(block, eventSeq % eventsPerBlock, lane, step, attempt, textIn(record.reason))
    const dead = numberIn(record.dead)
    if (step === "dead-lettered" && dead !== undefined)
      this.deadEnds.add(dead, eventSeq, lane, storedAt)
    if (step === "discarded" && dead !== undefined) this.deadEnds.take(dead)
  }

  #change(
    block: Block,
    at: number,
    lane: number,
    step: Step,
    attempt?: number,
    reason?: string
  ): void {
    const before = block.get(at, lane)
    const after = afterStep(before, step, attempt, reason)
    block.touched = this.#facts
    if (after === before) return
    if (this.#newcomers !== undefined && step === "begun" && !isBegun(before))
      this.#newcomers.add(roundName({ ...this.lanes.get(lane), eventSeq: block.first + at }))
    block.open += Number(isOpen(after)) - Number(isOpen(before))
    block.set(at, lane, after)
    this.#unpacked.add(block)
  }

  #isMeant(eventSeq: number, storedAt: number): boolean {
    const { firstEvent, firstKept, lastEvent, since, until } = this.scope
    return eventSeq >= firstKept
      ? eventSeq >= firstEvent && eventSeq <= lastEvent
      : storedAt >= since && storedAt <= until
  }

  /** True where a step belongs to a round of the scope. */
  #isKnown({ endpoint, eventSeq, round, tenant }: About, step: Step, storedAt: number): boolean {
    const { firstEvent, firstKept, isWhole, lastEvent, since, until } = this.scope
    if (round !== firstRound && step === "begun") return storedAt >= since && storedAt <= until
    if (round === firstRound && eventSeq >= Math.max(firstEvent, firstKept))
      return eventSeq <= lastEvent
    const block = this.#blocks.get(Math.floor(eventSeq / eventsPerBlock))
    if (isWhole && eventSeq <= lastEvent && storedAt <= until) return true
    return (
      (block?.get(eventSeq % eventsPerBlock, this.lanes.of(tenant, endpoint, round)) ?? 0) !== 0
    )
  }

  #mark(eventSeq: number, mark: number): void {
    const { plans } = this.#block(eventSeq)
    const at = eventSeq % eventsPerBlock
    plans[at] = (plans[at] ?? 0) | mark
  }

  #block(eventSeq: number): Block {
    const number = Math.floor(eventSeq / eventsPerBlock)
    const known = this.#blocks.get(number)
    if (known !== undefined) return known
    const block = new Block(number * eventsPerBlock)
    this.#blocks.set(number, block)
    return block
  }

  #pack(): void {
    for (const block of this.#unpacked) {
      if (block.open > 0 || this.#facts - block.touched < pause) continue
      block.pack()
      this.#unpacked.delete(block)
    }
  }
}

/** A name for a round of a delivery. */
export const roundName = ({ endpoint, eventSeq, round, tenant }: About): string =>
  `${eventSeq}.${tenant}.${endpoint}.${round}`
