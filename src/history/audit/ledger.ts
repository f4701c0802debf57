import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { firstRound } from "../../domain/delivery.ts"
import type { EventIdentity } from "../../domain/event.ts"
import { plannedOtherwise } from "../../domain/fact.ts"
import type { About, Loose, RoundAt } from "../fact-record.ts"
import { aboutOf, numberIn, planOf, raisedName, roundName, textIn } from "../fact-record.ts"
import type { Step } from "../fold/round.ts"
import { afterStep, hasEnded, isBegun, stepOfKind, unrecorded } from "../fold/round.ts"
import {
  afterPart,
  Block,
  DeadEnds,
  EventTimes,
  eventsPerBlock,
  hasBegun,
  hasPart,
  isComplete,
  isPlanned,
  isThere,
  LaneNumbers
} from "./ledger-memory.ts"
import type { Scope } from "./reach.ts"

/** The ledger's own bit in a round's state: a message of the round was found waiting. */
const waits = 1 << 13

/** Facts between two searches for blocks to pack. */
const factsBetweenPacks = 1 << 16

const isOpen = (state: number): boolean => isBegun(state) && !hasEnded(state)

/** What is impossible about a fact. */
type Objection = "unreadable-fact" | "plans-differ" | "event-replaced" | "fact-before-event"

/**
 * The state of each round in a scope, by event, according to the facts. A round takes about ten
 * bytes, and six once it is settled.
 */
export class Ledger {
  scope: Scope
  readonly lanes = new LaneNumbers()
  readonly deadEnds = new DeadEnds()
  /** From the events; until they are read, from the facts about them. */
  readonly times = new EventTimes()
  readonly #blocks = new Map<number, Block>()
  readonly #unpacked = new Set<Block>()
  #facts = 0
  /** The last event that was read. */
  #lastRead = 0
  /** Recorded attempts, repeats included. */
  attempts = 0
  skipped = new Map<string, number>()
  /**
   * Rounds that began after the last scan of waiting messages, by {@link roundName}: they were not
   * searched yet. Undefined before the first scan.
   */
  #newcomers: Set<string> | undefined
  /** The subjects of `missing` facts, by {@link raisedName}. */
  readonly raised = new Set<string>()
  /** Facts about rounds that began before the scope. */
  earlier = 0

  constructor(scope: Scope) {
    this.scope = scope
  }

  /** Called before a scan of waiting messages: rounds that begin later wait for the next scan. */
  beginLooking(): void {
    this.#newcomers = new Set()
    this.#forgetFound()
  }

  /**
   * Adds a stored event.
   *
   * @param at when, ms since the epoch.
   * @returns false if facts were about another event at its sequence. They no longer count.
   */
  event(seq: number, at: number): boolean {
    const isOther = this.times.isOther(seq, at)
    if (isOther) this.#forgetEvent(seq)
    this.times.set(seq, at)
    this.#mark(seq, isThere)
    this.#lastRead = Math.max(this.#lastRead, seq)
    return !isOther
  }

  /** True if another event has the sequence now. */
  isReplaced({ eventAt, eventSeq }: EventIdentity): boolean {
    return this.times.isOther(eventSeq, eventAt)
  }

  /** Adds a fact; returns what is impossible about it, if anything. */
  fact(record: Loose, storedAt: number): Objection | undefined {
    if (++this.#facts % factsBetweenPacks === 0) this.#pack()
    const { kind } = record
    const step = stepOfKind.get(kind)
    if (step === undefined && kind !== "unroutable" && kind !== "missing") return undefined
    const about = aboutOf(record)
    if (about === undefined) return "unreadable-fact"
    const { tenant } = this.scope
    if (tenant !== undefined && about.tenant !== tenant) return undefined
    if (this.isReplaced(about)) return "event-replaced"
    if (this.times.of(about.eventSeq) === 0) this.times.set(about.eventSeq, about.eventAt)
    if (storedAt < about.eventAt - maxClockSkewMs) return "fact-before-event"
    if (kind === "routed") return this.#plan(about, record, storedAt)
    const isPlannedOtherwise = record.reason === plannedOtherwise
    if (isPlannedOtherwise && kind === "attempt-failed") return undefined
    // An event for a single endpoint, whose first attempt succeeded.
    const isWithPlan = kind === "delivered" && record.plan !== undefined
    const objection = isWithPlan ? this.#plan(about, record, storedAt) : undefined
    if (kind === "unroutable") {
      if (this.#isInScope(about.eventSeq, storedAt)) this.#mark(about.eventSeq, isComplete)
    } else if (step === undefined) this.raised.add(raisedName(about))
    else {
      if (isPlannedOtherwise) this.#step(about, "begun", record, storedAt)
      this.#step(about, step, record, storedAt)
    }
    return objection
  }

  /** Records that a round waits in a stream; returns false if it has ended or is out of range. */
  found(about: About): boolean {
    if (this.isReplaced(about)) return false
    const { endpoint, eventSeq, round, tenant } = about
    const block = this.#blocks.get(blockOf(eventSeq))
    if (block === undefined || block.open === 0) return false
    const lane = this.lanes.find(tenant, endpoint, round)
    if (lane === undefined) return false
    const at = eventSeq % eventsPerBlock
    const state = block.get(at, lane)
    if (!isOpen(state)) return false
    block.set(at, lane, state | waits)
    return true
  }

  /** The state of a round. */
  stateOf({ endpoint, eventSeq, round, tenant }: RoundAt): number {
    const lane = this.lanes.find(tenant, endpoint, round)
    if (lane === undefined) return unrecorded
    return this.#blocks.get(blockOf(eventSeq))?.get(eventSeq % eventsPerBlock, lane) ?? unrecorded
  }

  /** All rounds, with their state. */
  each(see: (eventSeq: number, lane: number, state: number) => void): void {
    for (const [number, block] of this.#blocks)
      block.each((offset, lane, state) => see(number * eventsPerBlock + offset, lane, state))
  }

  /**
   * Rounds that have begun and not ended. Those of an event that the router may be working on count
   * as found: the event itself holds them.
   */
  open(mayBeUnderWay: (round: RoundAt) => boolean): {
    readonly found: number
    readonly lost: ReadonlyArray<RoundAt>
  } {
    const lost: Array<RoundAt> = []
    let found = 0
    for (const [number, block] of this.#blocks) {
      if (block.open === 0) continue
      block.each((offset, lane, state) => {
        if (!isOpen(state)) return
        const round = { ...this.lanes.get(lane), eventSeq: number * eventsPerBlock + offset }
        const isSeen = (state & waits) !== 0 || this.#newcomers?.has(roundName(round)) === true
        if (isSeen || (round.round === firstRound && mayBeUnderWay(round))) found++
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

  /** Events whose plan is absent or incomplete. */
  unplanned(): ReadonlyArray<{ readonly eventSeq: number; readonly isBegun: boolean }> {
    const found: Array<{ readonly eventSeq: number; readonly isBegun: boolean }> = []
    for (const [number, { plans }] of this.#blocks)
      for (const [offset, plan] of plans.entries())
        if (!isPlanned(plan))
          found.push({ eventSeq: number * eventsPerBlock + offset, isBegun: hasBegun(plan) })
    return found
  }

  /** Drops what routing began of earlier events: the facts about them have expired. */
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

  /**
   * Drops blocks whose rounds all settled some time ago, so that an audit can watch for months in
   * constant memory. A block with an open or a contradictory round stays.
   */
  forgetSettled(): void {
    let { firstEvent } = this.scope
    const gone = new Set<number>()
    for (const [number, block] of this.#blocks) {
      const end = block.first + eventsPerBlock
      if (end > this.#lastRead || !this.#isSettled(block)) continue
      block.each((_, lane) => this.lanes.release(lane))
      this.#blocks.delete(number)
      this.#unpacked.delete(block)
      this.times.forget(number)
      gone.add(number)
      firstEvent = Math.max(firstEvent, end)
    }
    if (gone.size === 0) return
    this.deadEnds.forget((eventSeq) => gone.has(blockOf(eventSeq)))
    this.scope = { ...this.scope, firstEvent, isWhole: false }
  }

  #plan(about: About, record: Loose, storedAt: number): Objection | undefined {
    const { eventSeq, tenant } = about
    const plan = planOf(record)
    if (plan === undefined) return "unreadable-fact"
    if (!this.#isInScope(eventSeq, storedAt)) return undefined
    const block = this.#block(eventSeq)
    const at = eventSeq % eventsPerBlock
    const known = block.plans[at] ?? 0
    const isAgain = hasPart(known, plan.part)
    block.touched = this.#facts
    if (!isAgain) {
      block.plans[at] = afterPart(known, plan.part, plan.last)
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
    if (step === "attempt-failed" || step === "delivered" || step === "delivered-late")
      this.attempts++
    this.#change(block, eventSeq % eventsPerBlock, lane, step, attempt, textIn(record.reason))
    const dead = numberIn(record.dead)
    if (step === "dead-lettered" && dead !== undefined)
      this.deadEnds.add({ dead, eventSeq, lane }, storedAt)
    if (step === "discarded" && dead !== undefined) this.deadEnds.discard({ dead, eventSeq, lane })
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
    if (before === unrecorded) this.lanes.use(lane)
    if (this.#newcomers !== undefined && step === "begun" && !isBegun(before))
      this.#newcomers.add(roundName({ ...this.lanes.get(lane), eventSeq: block.first + at }))
    block.open += Number(isOpen(after)) - Number(isOpen(before))
    block.set(at, lane, after)
    this.#unpacked.add(block)
  }

  #isInScope(eventSeq: number, storedAt: number): boolean {
    const { firstKept, lastEvent, since, until } = this.scope
    return eventSeq >= firstKept
      ? this.#isHeld(eventSeq) && eventSeq <= lastEvent
      : storedAt >= since && storedAt <= until
  }

  /** True for an event of the scope that was not dropped. */
  #isHeld(eventSeq: number): boolean {
    if (eventSeq >= this.scope.firstEvent) return true
    const plans = this.#blocks.get(blockOf(eventSeq))?.plans
    return ((plans?.[eventSeq % eventsPerBlock] ?? 0) & isThere) !== 0
  }

  /** True if a step belongs to a round of the scope. */
  #isKnown(about: RoundAt, step: Step, storedAt: number): boolean {
    const { eventSeq, round } = about
    const { firstKept, isWhole, lastEvent, since, until } = this.scope
    if (round !== firstRound && step === "begun") return storedAt >= since && storedAt <= until
    if (round === firstRound && eventSeq >= firstKept && this.#isHeld(eventSeq))
      return eventSeq <= lastEvent
    if (isWhole && eventSeq <= lastEvent && storedAt <= until) return true
    return this.stateOf(about) !== unrecorded
  }

  /** Drops what facts said of a sequence: they were about another event. */
  #forgetEvent(eventSeq: number): void {
    const block = this.#block(eventSeq)
    const at = eventSeq % eventsPerBlock
    block.plans[at] = 0
    block.open = 0
    block.keep((offset, _, state) => {
      if (offset === at) return false
      if (isOpen(state)) block.open++
      return true
    })
  }

  #mark(eventSeq: number, mark: number): void {
    const block = this.#block(eventSeq)
    const at = eventSeq % eventsPerBlock
    block.plans[at] = (block.plans[at] ?? 0) | mark
    block.touched = this.#facts
  }

  #block(eventSeq: number): Block {
    const number = blockOf(eventSeq)
    const known = this.#blocks.get(number)
    if (known !== undefined) return known
    const block = new Block(number * eventsPerBlock)
    this.#blocks.set(number, block)
    return block
  }

  #pack(): void {
    for (const block of this.#unpacked) {
      if (!this.#isQuiet(block)) continue
      block.pack()
      this.#unpacked.delete(block)
    }
  }

  /** True if no round is open and no recent fact changed the block. */
  #isQuiet(block: Block): boolean {
    return block.open === 0 && this.#facts - block.touched >= factsBetweenPacks
  }

  #isSettled(block: Block): boolean {
    return this.#isQuiet(block) && block.plans.every(isPlanned) && block.pack()
  }
}

const blockOf = (eventSeq: number): number => Math.floor(eventSeq / eventsPerBlock)
