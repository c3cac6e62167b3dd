#include "mpi.h"
#include <stdio.h>
#define N 1024
static double a[N+2][N+2], b[N+2][N+2];
int main(void){ for(int i=0;i<N+2;i++) a[i][0]=b[i][0]=100; double t=MPI_Wtime();
 for(int k=0;k<200;k++){ for(int i=1;i<=N;i++) for(int j=1;j<=N;j++) b[i][j]=0.25*(a[i-1][j]+a[i+1][j]+a[i][j-1]+a[i][j+1]);
  for(int i=1;i<=N;i++) for(int j=1;j<=N;j++) a[i][j]=0.25*(b[i-1][j]+b[i+1][j]+b[i][j-1]+b[i][j+1]); }
 printf("time=%.3f sum %g\n",MPI_Wtime()-t,a[N/2][1]); return 0;}
