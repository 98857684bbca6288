/* SPDX-License-Identifier: GPL-2.0-only */
/* SDL: its users count surfaces up themselves; formats are shared, and hold their palette. */
#include <SDL.h>

static void held(SDL_Surface *s)
{
	if (!s)
		abort();
	s->refcount++;
	SDL_FreeSurface(s);
	SDL_FreeSurface(s);
}

int main(void)
{
	static char pixels[64];

	for (int i = 0; i < 4; i++) {
		SDL_Surface *like = SDL_CreateRGBSurface(0, 4, 4, 32, 0, 0, 0, 0);
		SDL_PixelFormat *formats[3], *indexed = SDL_AllocFormat(SDL_PIXELFORMAT_INDEX8);
		SDL_PixelFormat *other = SDL_AllocFormat(SDL_PIXELFORMAT_INDEX8);
		SDL_Palette *palette = SDL_AllocPalette(4);

		held(SDL_CreateRGBSurface(0, 4, 4, 32, 0, 0, 0, 0));
		held(SDL_CreateRGBSurfaceWithFormat(0, 4, 4, 32, SDL_PIXELFORMAT_RGBA32));
		held(SDL_CreateRGBSurfaceFrom(pixels, 2, 2, 32, 8, 0, 0, 0, 0));
		held(SDL_CreateRGBSurfaceWithFormatFrom(pixels, 2, 2, 32, 8, SDL_PIXELFORMAT_RGBA32));
		held(SDL_ConvertSurfaceFormat(like, SDL_PIXELFORMAT_RGB24, 0));
		held(SDL_ConvertSurface(like, like->format, 0));
		held(SDL_DuplicateSurface(like));
		SDL_FreeSurface(like);
		for (int n = 0; n < 3; n++)
			formats[n] = SDL_AllocFormat(SDL_PIXELFORMAT_BGRA4444);
		for (int n = 0; n < 3; n++)
			SDL_FreeFormat(formats[n]);
		/* each format holds it */
		SDL_SetPixelFormatPalette(indexed, palette);
		SDL_FreePalette(palette);
		SDL_SetPixelFormatPalette(other, palette);
		SDL_FreeFormat(indexed);
		SDL_FreeFormat(other);
	}
	return 0;
}
