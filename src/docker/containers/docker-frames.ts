export interface FramePart {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Buffer;
  /** Content bytes of the whole frame. */
  readonly frameBytes: number;
  readonly isLast: boolean;
}

/** Frame header: a kind, three zeros and a length. */
const HEAD_BYTES = 8;
const LENGTH_AT = 4;
const STDERR = 2;

/** Parses the framed outputs of a container without a terminal. Buffers only a frame's header. */
export class DockerFrames {
  #head = Buffer.alloc(0);
  #left = 0;

  *read(chunk: Buffer): Generator<FramePart> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#head.length < HEAD_BYTES) {
        const missing = HEAD_BYTES - this.#head.length;
        this.#head = Buffer.concat([this.#head, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (this.#head.length < HEAD_BYTES) return;
        this.#left = this.#head.readUInt32BE(LENGTH_AT);
        if (this.#left > 0) continue;
      }
      const bytes = rest.subarray(0, this.#left);
      this.#left -= bytes.length;
      rest = rest.subarray(bytes.length);
      const stream = this.#head[0] === STDERR ? 'stderr' : 'stdout';
      const frameBytes = this.#head.readUInt32BE(LENGTH_AT);
      const isLast = this.#left === 0;
      if (isLast) this.#head = Buffer.alloc(0);
      yield { stream, bytes, frameBytes, isLast };
    }
  }
}
