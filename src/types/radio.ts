/** The formats of streams; a stream's mount ends with its format. */
export const RADIO_FORMATS = ['mp3', 'ogg', 'aac'] as const;

export type RadioFormat = (typeof RADIO_FORMATS)[number];

/** `unknown` while Icecast does not answer. */
export const RADIO_STATUSES = ['live', 'offline', 'unknown'] as const;

export type RadioStatus = (typeof RADIO_STATUSES)[number];

/** Bytes received from a source until a moment, in milliseconds since 1970. */
export interface ByteCount {
  readonly at: number;
  readonly bytes: number;
}
