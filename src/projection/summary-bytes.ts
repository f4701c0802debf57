import { Spread } from "../history/fold/spread.ts"
import { Summary } from "../history/fold/summary.ts"
import type { Totals } from "../history/fold/totals.ts"
import { DurationHistogram } from "../policy/durations.ts"

/** Writes whole numbers of any size, small ones in one byte: seven bits a byte, the lowest first. */
class NumberWriter {
  readonly #bytes: Array<number> = []

  write(number: number): void {
    let rest = number
    while (rest >= 0x80) {
      this.#bytes.push((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes.push(rest)
  }

  /** Writes how many there are, and each. */
  writeAll(numbers: ReadonlyArray<number>): void {
    this.write(numbers.length)
    for (const number of numbers) this.write(number)
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }
}

class NumberReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  read(): number {
    let number = 0
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.#bytes[this.#at++] ?? 0
      number += (byte & 0x7f) * unit
      if (byte < 0x80) return number
    }
  }

  readAll(): Array<number> {
    return Array.from({ length: this.read() }, () => this.read())
  }
}

const writeHistogram = (writer: NumberWriter, histogram: DurationHistogram): void => {
  const { buckets } = histogram
  writer.write(buckets.length)
  let before = 0
  for (const [bucket, times] of buckets) {
    writer.write(bucket - before)
    writer.write(times)
    before = bucket
  }
}

const readHistogram = (reader: NumberReader): DurationHistogram => {
  const histogram = new DurationHistogram()
  let bucket = 0
  for (let left = reader.read(); left > 0; left--) {
    bucket += reader.read()
    histogram.count(bucket, reader.read())
  }
  return histogram
}

/** Returns what of a summary is stored as bytes: all but its totals, which have columns. */
export const bytesOf = ({ answers, spread }: Summary): Uint8Array => {
  const writer = new NumberWriter()
  const { attempts, latency, toSuccess } = spread.parts
  writer.writeAll(answers)
  writer.writeAll(attempts)
  writeHistogram(writer, latency)
  writeHistogram(writer, toSuccess)
  return writer.bytes
}

/** Returns the summary of stored bytes: what {@link bytesOf} was given. */
export const summaryOf = (totals: Totals, bytes: Uint8Array): Summary => {
  const reader = new NumberReader(bytes)
  const answers = reader.readAll()
  const attempts = reader.readAll()
  const latency = readHistogram(reader)
  const toSuccess = readHistogram(reader)
  return new Summary(totals, new Spread({ attempts, latency, toSuccess }), answers)
}
