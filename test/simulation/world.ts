/* Virtual time, simulated processes, and the one order in which everything happens. */
import v8 from "node:v8"
import { Scheduler } from "effect"
import type { Timer, Timers } from "../../src/time/timers.ts"
import { useTimers } from "../../src/time/timers.ts"
import type { Chance } from "./chance.ts"
import { chanceOf, hashOf } from "./chance.ts"

v8.setFlagsFromString("--allow-natives-syntax")
/**
 * Runs all microtasks now, so that one task of the world is over before the next begins. It is an
 * internal of V8, and works from a macrotask only.
 */
const drainMicrotasks = new Function("%PerformMicrotaskCheckpoint()") as () => void

/** When a world begins: ms since the epoch. */
export const epochMs = 1_790_000_000_000
/** What the monotonic clocks show then, ms. */
const begunMs = 1_000_000
/** Longest time until a turn of a process's event loop comes, ms. Turns must take time. */
const maxTurnMs = 1

/** A simulated process: what a crash ends, with clocks and timers of its own. */
export class SimProcess {
  readonly name: string
  readonly timers: Timers
  /** Runs fibers in turns of this process. */
  readonly scheduler: Scheduler.Scheduler
  isAlive = true
  /** Stopped until then by its machine, as by a suspension; ms of the world's time. */
  pausedUntil = 0
  /** The end of its last pause. */
  resumedAt = Number.NEGATIVE_INFINITY
  /** What its wall clock is ahead of the world's, ms. */
  clockOffset = 0
  /** When its last turn comes: turns come in order. */
  turnAt = 0
  readonly turns: Chance

  constructor(world: World, name: string) {
    this.name = name
    this.turns = chanceOf(world.seed, "turns", name)
    this.timers = {
      monotonicMs: () => world.now,
      wallMs: () => world.wall + Math.round(this.clockOffset),
      after: <A>(ms: number, run: (of: A) => void, of?: A) =>
        world.after(ms, () => run(of as A), this),
      every: (ms, run) => world.after(ms, run, this, ms),
      immediate: (run) => {
        world.soon(run, this)
      },
      cancel: (timer) => world.cancel(timer)
    }
    this.scheduler = new Scheduler.MixedScheduler("async", (run) => {
      const task = world.soon(run, this)
      return () => world.cancel(task)
    })
  }
}

/** Something that a process does at a time. */
interface Task extends Timer {
  at: number
  readonly order: number
  readonly of: SimProcess
  /** Undefined once it is cancelled. */
  run: (() => void) | undefined
  readonly every: number
}

const isBefore = (a: Task, b: Task): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Tasks by time. */
class Heap {
  readonly #tasks: Array<Task> = []

  get first(): Task | undefined {
    return this.#tasks[0]
  }

  push(task: Task): void {
    const tasks = this.#tasks
    let i = tasks.length
    tasks.push(task)
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!isBefore(task, tasks[parent] as Task)) break
      tasks[i] = tasks[parent] as Task
      i = parent
    }
    tasks[i] = task
  }

  pop(): void {
    const tasks = this.#tasks
    const last = tasks.pop() as Task
    const size = tasks.length
    if (size === 0) return
    let i = 0
    while (true) {
      let child = 2 * i + 1
      if (child >= size) break
      if (child + 1 < size && isBefore(tasks[child + 1] as Task, tasks[child] as Task)) child++
      if (!isBefore(tasks[child] as Task, last)) break
      tasks[i] = tasks[child] as Task
      i = child
    }
    tasks[i] = last
  }
}

/** One run of the simulation. */
export class World {
  readonly seed: number
  /** The world's time, ms; that of all monotonic clocks. */
  now = begunMs
  /** What is done from outside: it never crashes. */
  readonly outside: SimProcess
  /** How many tasks were run. */
  steps = 0
  #hash = 0x811c9dc5
  readonly #log: Array<string> | undefined
  readonly #heap = new Heap()
  #order = 0

  /** @param keepsLog whether `log` shows what happened. */
  constructor(seed: number, keepsLog = false) {
    this.seed = seed
    this.#log = keepsLog ? [] : undefined
    this.outside = new SimProcess(this, "outside")
  }

  /** Wall clock of the broker and of whoever has a right one, ms since the epoch. */
  get wall(): number {
    return Math.floor(epochMs + this.now - begunMs)
  }

  /** Time since the world began, ms. */
  get age(): number {
    return this.now - begunMs
  }

  /** Identifies what happened, in its order. */
  get hash(): string {
    return (this.#hash >>> 0).toString(16)
  }

  get log(): ReadonlyArray<string> {
    return this.#log ?? []
  }

  /** Notes what happened, for the hash, and for people. */
  trace(what: string): void {
    this.#hash = Math.imul(hashOf(what, this.#hash) ^ (this.now * 1000), 0x01000193)
    this.#log?.push(`${(this.age / 1000).toFixed(3).padStart(9)} ${what}`)
  }

  /** Notes for people what is no more than another view of what happened. */
  note(what: () => string): void {
    this.#log?.push(`${(this.age / 1000).toFixed(3).padStart(9)} ${what()}`)
  }

  /** Runs a task of a process after a time, ms; again and again where `every` is given. */
  after(ms: number, run: () => void, of: SimProcess, every = 0): Task {
    const at = this.now + Math.max(0, ms)
    const task: Task = { at, order: this.#order++, of, run, every, unref: () => task }
    this.#heap.push(task)
    return task
  }

  /** Runs a task in the next turn of a process, which takes some time to come. */
  soon(run: () => void, of: SimProcess): Task {
    of.turnAt = Math.max(of.turnAt, this.now + maxTurnMs * of.turns.next() ** 4)
    return this.after(of.turnAt - this.now, run, of)
  }

  cancel(timer: Timer | undefined): void {
    if (timer !== undefined) (timer as Task).run = undefined
  }

  /** Runs something as a process that is not in a task of its own. */
  as<A>(process: SimProcess, run: () => A): A {
    const restore = useTimers(process.timers)
    try {
      return run()
    } finally {
      restore()
    }
  }

  pause(process: SimProcess, ms: number): void {
    process.pausedUntil = Math.max(process.pausedUntil, this.now + ms)
    process.resumedAt = process.pausedUntil
  }

  /** Runs until a time, or until the condition holds. */
  runUntil(end: number, isDone: () => boolean = () => false): void {
    const restore = useTimers(this.outside.timers)
    try {
      drainMicrotasks()
      for (let top = this.#heap.first; top !== undefined && top.at <= end; top = this.#heap.first) {
        this.#heap.pop()
        const { of, run } = top
        if (run === undefined || !of.isAlive) continue
        if (of.pausedUntil > top.at) {
          top.at = of.pausedUntil
          this.#heap.push(top)
          continue
        }
        this.now = Math.max(this.now, top.at)
        this.steps++
        if (top.every > 0) {
          top.at += top.every
          this.#heap.push(top)
        }
        useTimers(of.timers)
        run()
        drainMicrotasks()
        if (isDone()) return
      }
      this.now = Math.max(this.now, end)
    } finally {
      restore()
    }
  }
}
