import { hexText } from './hex-text.js';

/** An address of the chain as a caller writes it; handlers have it in lower case. */
export const chainAddress = hexText(/^0x[\da-fA-F]{40}$/, 'must be 0x and 40 hex digits');
