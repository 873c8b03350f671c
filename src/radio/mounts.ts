import { RADIO_FORMATS, type RadioFormat } from '../types/radio.js';

/** The content types that a source of each format may send. */
export const CONTENT_TYPES: Readonly<Record<RadioFormat, readonly string[]>> = {
  mp3: ['audio/mpeg'],
  ogg: ['application/ogg', 'audio/ogg'],
  aac: ['audio/aac', 'audio/aacp'],
};

/** The place of a stream in Icecast. */
export interface Mount {
  readonly id: string;
  readonly format: RadioFormat;
}

const MOUNT = /^\/([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\.(mp3|ogg|aac)$/;

/** Returns the path of a stream in Icecast. */
export const mountOf = ({ format, id }: Mount): string => `/${id}.${format}`;

/** Returns the stream that a path could belong to; undefined for any other path. */
export function readMount(mount: string): Mount | undefined {
  const [, id, ending] = MOUNT.exec(mount) ?? [];
  const format = RADIO_FORMATS.find((each) => each === ending);
  return id === undefined || format === undefined ? undefined : { id, format };
}
