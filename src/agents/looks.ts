/** Looks at a time: each is a question to a gateway, and to Docker where it does not answer. */
const MAX_LOOKS = 100;

/** How long a look waits for its turn, in milliseconds. */
const MAX_WAIT_MS = 10_000;

/** Too many agents are looked at, and none of them answers soon. */
export class NoTurnError extends Error {
  constructor() {
    super('Too many agents are being looked at');
    this.name = 'NoTurnError';
  }
}

/** Lets so many looks at agents go at a time; the others wait in the order they came. */
export class Looks {
  #underWay = 0;
  readonly #waiting = new Set<() => void>();

  constructor(
    private readonly max = MAX_LOOKS,
    private readonly waitMs = MAX_WAIT_MS,
  ) {}

  /** @throws NoTurnError when its turn does not come. */
  async take<T>(look: () => Promise<T>): Promise<T> {
    if (this.#underWay >= this.max) await this.#turn();
    else this.#underWay++;
    try {
      return await look();
    } finally {
      const [next] = this.#waiting;
      if (next) next();
      else this.#underWay--;
    }
  }

  /** Resolves with the place of one that has ended. */
  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(begin);
        reject(new NoTurnError());
      }, this.waitMs);
      const begin = () => {
        clearTimeout(timer);
        this.#waiting.delete(begin);
        resolve();
      };
      this.#waiting.add(begin);
    });
  }
}
